"""`twinstream__freshness`: notices what a deadline on a run cannot, a run that never came."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.sdk import DAG

from twinstream_airflow.dags.common import QUICK, START, timetable
from twinstream_airflow.notify import notifiers
from twinstream_airflow.operators.freshness import FreshnessOperator

if TYPE_CHECKING:
    from twinstream.pipeline import Definition

ABOUT = (
    "Every hour: compares the age of each pipeline's last verdict, how long data has been waiting, and whether a "
    "continuous run shows itself and keeps up, with its policy (`max_verdict_age` and `max_lag` of its orchestration). "
    "What is staler than allowed fails here and notifies."
)


def freshness_dag(definitions: Sequence[Definition]) -> DAG:
    """The freshness DAG of all pipelines."""
    with DAG(
        "twinstream__freshness",
        description=ABOUT.partition(",")[0],
        schedule=timetable("@hourly"),
        start_date=START,
        catchup=False,
        max_active_runs=1,
        doc_md=ABOUT,
        tags={"twinstream", "freshness"},
        default_args={
            "owner": "twinstream",
            "retries": 1,
            "retry_delay": timedelta(minutes=1),
            "execution_timeout": QUICK,
        },
    ) as dag:
        for definition in definitions:
            policy = definition.pipeline.orchestration
            FreshnessOperator(
                task_id=definition.name,
                pipeline=definition.name,
                owner=policy.owner,
                max_verdict_age=policy.duration("max_verdict_age") if policy.max_verdict_age else None,
                max_lag=policy.duration("max_lag") if policy.max_lag else None,
                on_failure_callback=notifiers(policy.notify) or None,
            )
    return dag
