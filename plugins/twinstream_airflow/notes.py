"""Notes on DAG runs: tasks leave them, a listener puts the newest one on the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow.sdk import Context

KEY = "twinstream_note"
"""The XCom that holds it."""


def note(context: Context, text: str) -> None:
    """Leaves a note for the DAG run."""
    context["ti"].xcom_push(key=KEY, value=text)
