"""Release, discard, reinject, pause: what people decide about a pipeline. Airflow finds DAGs here."""

from twinstream_airflow.dags.build import control_dags

globals().update(control_dags())
