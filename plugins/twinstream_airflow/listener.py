"""Puts what a run found on the run itself, as its note. Runs in the scheduler: quick, and never in its way."""

from __future__ import annotations

import logging
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from airflow.listeners import hookimpl

from twinstream_airflow.notes import KEY

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

log = logging.getLogger(__name__)


@hookimpl
def on_dag_run_success(dag_run: DagRun, msg: str) -> None:
    """Airflow calls this when a run has succeeded."""
    _put_note(dag_run)


@hookimpl
def on_dag_run_failed(dag_run: DagRun, msg: str) -> None:
    """Airflow calls this when a run has failed."""
    _put_note(dag_run)


def _put_note(dag_run: DagRun) -> None:
    try:
        if "__" not in dag_run.dag_id:
            return
        from airflow.models.xcom import XComModel
        from sqlalchemy.orm import object_session

        session = object_session(dag_run)
        if session is None:
            return
        with session.no_autoflush:
            query = XComModel.get_many(run_id=dag_run.run_id, dag_ids=dag_run.dag_id, key=KEY)
            rows: list[Any] = sorted(session.scalars(query), key=attrgetter("timestamp"))
        if rows:
            dag_run.note = str(XComModel.deserialize_value(rows[-1]))[:1000]
    except Exception:
        log.warning("The note of %s %s could not be put on it", dag_run.dag_id, dag_run.run_id, exc_info=True)
