"""The plugin as Airflow knows it."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from twinstream_airflow import listener
from twinstream_airflow.links import DataDocsLink, ReportLink, SparkLink


class TwinstreamPlugin(AirflowPlugin):
    """Links on tasks and notes on runs; operators and DAGs are imported where they are used."""

    name = "twinstream"
    operator_extra_links = [SparkLink(), ReportLink(), DataDocsLink()]
    listeners = [listener]
