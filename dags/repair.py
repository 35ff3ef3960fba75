"""Repair what reconciliation found. Airflow finds DAGs here."""

from twinstream_airflow.dags.build import repair_dags

globals().update(repair_dags())
