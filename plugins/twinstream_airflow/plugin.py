"""The plugin as Airflow knows it."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from twinstream_airflow import listener
from twinstream_airflow.links import DataDocsLink, ReportLink, SparkLink
from twinstream_airflow.web.mount import APPS, VIEWS


class TwinstreamPlugin(AirflowPlugin):
    """Pages, links on tasks, notes on runs; operators and DAGs are imported where they are used."""

    name = "twinstream"
    operator_extra_links = [SparkLink(), ReportLink(), DataDocsLink()]
    listeners = [listener]
    fastapi_apps = APPS
    external_views = VIEWS
