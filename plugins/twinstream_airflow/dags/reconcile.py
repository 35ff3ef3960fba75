"""`<pipeline>__reconcile`: are the streamed numbers right? On every new batch result, and on a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, AssetOrTimeSchedule, TaskGroup, TriggerRule

from twinstream_airflow.dags import forms
from twinstream_airflow.dags.assets import batch_asset
from twinstream_airflow.dags.common import on_spark, pipeline_dag, timetable
from twinstream_airflow.dags.recompute import CHOSEN
from twinstream_airflow.operators.batch import RecomputeOperator, ReconcileOperator
from twinstream_airflow.operators.frontier import FrontierOperator
from twinstream_airflow.operators.verdict import (
    CallForRepairOperator,
    ReportOperator,
    ValidateOperator,
    VerdictOperator,
)

if TYPE_CHECKING:
    from twinstream.pipeline import Definition

ABOUT = (
    "Compares what was streamed with a batch recomputation at the same frontier, row by row; validates with Great "
    "Expectations; writes the report. Differences call for a repair, which does not hold up the next "
    "reconciliation, and fail the run."
)
RECOMPUTE = "compare.recompute"
RECONCILE = "compare.reconcile"


def reconcile_dag(definition: Definition) -> DAG:
    """The reconciliation DAG of a pipeline."""
    name = definition.name
    with pipeline_dag(
        definition,
        "reconcile",
        schedule=_schedule(definition),
        about=ABOUT,
        params={"frontier": forms.frontier(), "fresh": forms.fresh()},
        max_active_runs=1,
    ) as dag:
        frontier = FrontierOperator(
            task_id="frontier", pipeline=name, frontier="{{ params.frontier }}", recompute=RECOMPUTE
        )
        with TaskGroup("compare", tooltip="Stream and batch at the same frontier") as compare:
            recompute = RecomputeOperator(task_id="recompute", pipeline=name, frontier=CHOSEN, **on_spark(definition))
            reconcile = ReconcileOperator(
                task_id="reconcile", pipeline=name, frontier=CHOSEN, fresh="{{ params.fresh }}",
                trigger_rule=TriggerRule.NONE_FAILED, **on_spark(definition),
            )  # fmt: skip
            recompute >> reconcile
        with TaskGroup("tell", tooltip="What was found") as tell:
            validate = ValidateOperator(task_id="validate", pipeline=name, after=RECONCILE)
            report = ReportOperator(task_id="report", pipeline=name, after=RECONCILE)
            validate >> report
        repair = CallForRepairOperator(task_id="repair", trigger_dag_id=f"{name}__repair", after=RECONCILE)
        verdict = VerdictOperator(
            task_id="verdict", pipeline=name, after=RECONCILE, trigger_rule=TriggerRule.NONE_FAILED
        )
        frontier >> compare >> tell >> repair >> verdict
    return dag


def _schedule(definition: Definition) -> Any:
    times = timetable(definition.pipeline.orchestration.reconcile)
    batch = batch_asset(definition.name)
    return [batch] if times is None else AssetOrTimeSchedule(timetable=times, assets=[batch])
