"""Links on a task: its report, Great Expectations' Data Docs, Spark's own pages or the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import attrs
from airflow.sdk import BaseOperatorLink
from airflow.sdk.configuration import conf

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


@attrs.define()
class _Link(BaseOperatorLink):
    """A link that its operator found while it worked."""

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        found: dict[str, str] = getattr(operator, "found_links", {})
        return found.get(self.xcom_key, "")


@attrs.define()
class ReportLink(_Link):
    """The report of a reconciliation."""

    name = "Report"


@attrs.define()
class DataDocsLink(_Link):
    """What Great Expectations found."""

    name = "Data Docs"


@attrs.define()
class SparkLink(_Link):
    """Where the work can be watched: Spark's pages, or the task's log where Spark has none."""

    name = "Spark"


def reconciliation_page(pipeline: str, id: int) -> str:
    """Where people see a reconciliation: its page within Airflow's."""
    return f"{_airflow()}/plugin/twinstream/twinstream/pipelines/{quote(pipeline)}/reconciliations/{id}"


def data_docs_page(pipeline: str, path: str) -> str:
    """Where people see one of Great Expectations' pages."""
    return f"{_airflow()}/twinstream/pipelines/{quote(pipeline)}/data-docs/{quote(path)}"


def _airflow() -> str:
    return str(conf.get("api", "base_url", fallback="")).rstrip("/")


def show(operator: Any, task_instance: Any, link: BaseOperatorLink, address: str) -> None:
    """Makes a link work at once, not only when the task has ended."""
    operator.found_links = {**getattr(operator, "found_links", {}), link.xcom_key: address}
    task_instance.xcom_push(key=link.xcom_key, value=address)
