# One image for Airflow and for Spark: the same Python, packages, jars and code on every side.
FROM python:3.11-slim-bookworm

RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --uid 50000 --create-home twinstream \
    && install -d -o twinstream -g twinstream \
        /opt/twinstream /var/lib/twinstream /var/lib/airflow /etc/twinstream/spark
USER twinstream
WORKDIR /opt/twinstream

# What takes minutes depends on the lock and the list of jars alone, and is kept while they do not change.
COPY --chown=twinstream:twinstream requirements.txt ./
COPY --chown=twinstream:twinstream bin/setup bin/
COPY --chown=twinstream:twinstream bin/lib/debian.sh bin/lib/environment.sh bin/lib/class_archive.py bin/lib/
COPY --chown=twinstream:twinstream include/spark include/spark
RUN bin/setup && rm -rf "$HOME/.cache" "$HOME/.ivy2" "$HOME/.ivy2.5.2" .setup.lock

COPY --chown=twinstream:twinstream bin bin
COPY --chown=twinstream:twinstream dags dags
COPY --chown=twinstream:twinstream include include
COPY --chown=twinstream:twinstream plugins plugins
COPY --chown=twinstream:twinstream spark_jobs spark_jobs

ENV PATH=/opt/twinstream/.venv/bin:/opt/twinstream/bin:$PATH \
    SPARK_HOME=/opt/twinstream/.venv/lib/python3.11/site-packages/pyspark \
    PYSPARK_PYTHON=/opt/twinstream/.venv/bin/python \
    TWINSTREAM_HOME=/var/lib/twinstream \
    TWINSTREAM_PIPELINES=/opt/twinstream/include/pipelines \
    TWINSTREAM_JARS=/opt/twinstream/.jars \
    AIRFLOW_HOME=/var/lib/airflow \
    AIRFLOW__CORE__DAGS_FOLDER=/opt/twinstream/dags \
    AIRFLOW__CORE__PLUGINS_FOLDER=/opt/twinstream/plugins \
    AIRFLOW__CORE__LOAD_EXAMPLES=False
CMD ["twinstream", "--help"]
