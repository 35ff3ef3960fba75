"""Recompute every pipeline from its source. Airflow finds DAGs here."""

from twinstream_airflow.dags.build import recompute_dags

globals().update(recompute_dags())
