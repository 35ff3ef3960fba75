"""Notice pipelines that are staler than their policy allows. Airflow finds DAGs here."""

from twinstream_airflow.dags.build import freshness_dags

globals().update(freshness_dags())
