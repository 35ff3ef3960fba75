"""The DAGs: one builder per family, each making one DAG per pipeline."""
