"""Fold, clean and scrub every pipeline; back the ledger up. Airflow finds DAGs here."""

from twinstream_airflow.dags.build import maintenance_dags

globals().update(maintenance_dags())
