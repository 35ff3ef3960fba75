"""`<pipeline>__recompute`: the result anew from the source; the only DAG that tells of a new batch result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import DAG

from twinstream_airflow.dags import forms
from twinstream_airflow.dags.common import on_spark, pipeline_dag, timetable
from twinstream_airflow.operators.batch import RecomputeOperator
from twinstream_airflow.operators.frontier import FrontierOperator

if TYPE_CHECKING:
    from twinstream.pipeline import Definition

ABOUT = (
    "Computes the result anew from the source, by the plain query over all records up to a frontier. The batch "
    "table is what reconciliation compares the stream with; its asset starts the reconciliation."
)
CHOSEN = "{{ ti.xcom_pull(task_ids='frontier')['frontier'] }}"


def recompute_dag(definition: Definition) -> DAG:
    """The recomputation DAG of a pipeline."""
    name = definition.name
    with pipeline_dag(
        definition,
        "recompute",
        schedule=timetable(definition.pipeline.orchestration.recompute),
        about=ABOUT,
        params={"frontier": forms.frontier()},
        max_active_runs=1,
    ) as dag:
        frontier = FrontierOperator(task_id="frontier", pipeline=name, frontier="{{ params.frontier }}")
        recompute = RecomputeOperator(
            task_id="recompute", pipeline=name, frontier=CHOSEN, emits=True, **on_spark(definition)
        )
        frontier >> recompute
    return dag
