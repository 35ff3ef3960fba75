"""Twinstream in Airflow: operators, triggers, links and the DAGs of every pipeline definition."""
