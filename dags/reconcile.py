"""Compare stream and batch of every pipeline. Airflow finds DAGs here."""

from twinstream_airflow.dags.build import reconcile_dags

globals().update(reconcile_dags())
