"""Links on a task: its report, Great Expectations' Data Docs, Spark's own pages or the log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import attrs
from airflow.sdk import BaseOperatorLink

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


def address_of(path: Path, home: Path) -> str:
    """Where a browser finds a file of the home: behind TWINSTREAM_FILES_URL if a web server serves it, else on disk."""
    base = os.environ.get("TWINSTREAM_FILES_URL")
    return f"{base.rstrip('/')}/{quote(str(path.relative_to(home)))}" if base else path.as_uri()


def show(operator: Any, task_instance: Any, link: BaseOperatorLink, address: str) -> None:
    """Makes a link work at once, not only when the task has ended."""
    operator.found_links = {**getattr(operator, "found_links", {}), link.xcom_key: address}
    task_instance.xcom_push(key=link.xcom_key, value=address)
