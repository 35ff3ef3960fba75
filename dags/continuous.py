"""One long-lived query for every pipeline that reads topics. Airflow finds DAGs here."""

from twinstream_airflow.dags.build import continuous_dags

globals().update(continuous_dags())
