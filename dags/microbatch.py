"""Plan and drain every pipeline, on its schedule and on new data. Airflow finds DAGs here."""

from twinstream_airflow.dags.build import microbatch_dags

globals().update(microbatch_dags())
