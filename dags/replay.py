"""Build a new generation of a pipeline and promote it. Airflow finds DAGs here."""

from twinstream_airflow.dags.build import replay_dags

globals().update(replay_dags())
