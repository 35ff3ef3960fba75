"""Triggers: what starts a DAG by itself."""
