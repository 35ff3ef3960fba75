"""`<pipeline>__microbatch`: plan and drain, on a schedule and when there is new data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, AssetOrTimeSchedule

from twinstream_airflow.dags import forms
from twinstream_airflow.dags.assets import source_asset, stream_asset
from twinstream_airflow.dags.common import on_spark, pipeline_dag, timetable
from twinstream_airflow.operators.drain import DrainOperator
from twinstream_airflow.operators.plan import PlanOperator

if TYPE_CHECKING:
    from twinstream.pipeline import Definition

ABOUT = (
    "Plans what is new in the source as txids and drains them, exactly once, in as few Spark jobs as possible. A "
    "run with nothing to do starts no Spark. Retry, clear, backfill or trigger it as often as you like: the "
    "ledger decides what there is to do, never the run."
)


def microbatch_dag(definition: Definition) -> DAG:
    """The micro-batch DAG of a pipeline."""
    name = definition.name
    with pipeline_dag(
        definition,
        "microbatch",
        schedule=_schedule(definition),
        about=ABOUT,
        params={"max_batches": forms.max_batches(), "batch_records": forms.batch_records()},
        max_active_runs=1,
    ) as dag:
        plan = PlanOperator(
            task_id="plan",
            pipeline=name,
            batch_records="{{ params.batch_records }}",
            execution_timeout=definition.pipeline.orchestration.duration("timeout"),
        )
        drain = DrainOperator(
            task_id="drain",
            pipeline=name,
            max_batches="{{ params.max_batches }}",
            batch_records="{{ params.batch_records }}",
            outlets=[stream_asset(name)],
            **on_spark(definition),
        )
        plan >> drain
    return dag


def _schedule(definition: Definition) -> Any:
    policy = definition.pipeline.orchestration
    times = timetable(policy.microbatch)
    if not policy.watch:
        return times
    source = source_asset(definition.name, watched=True)
    return [source] if times is None else AssetOrTimeSchedule(timetable=times, assets=[source])
