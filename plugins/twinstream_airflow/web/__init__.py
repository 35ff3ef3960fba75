"""The pages in Airflow's UI and the JSON they are made of; the ledger is only ever read."""
