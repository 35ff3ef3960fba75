"""The demo by Airflow: boots it, lets its DAGs run by the REST API, and shows what happens."""
