"""One DAG for every definition that cannot be run. Airflow finds DAGs here."""

from twinstream_airflow.dags.build import broken_dags

globals().update(broken_dags())
