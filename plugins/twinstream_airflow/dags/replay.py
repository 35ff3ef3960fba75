"""`<pipeline>__replay`: a new generation under the current definition, then the switch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.providers.standard.operators.python import ShortCircuitOperator
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG

from twinstream_airflow.dags import forms
from twinstream_airflow.dags.common import on_spark, pipeline_dag
from twinstream_airflow.operators.base import yes
from twinstream_airflow.operators.replay import PromoteOperator, ReplayOperator

if TYPE_CHECKING:
    from twinstream.pipeline import Definition

ABOUT = (
    "Builds a new generation under the current definition from the whole source, beside the one that readers see, "
    "then switches readers to it in one step. This is the way on after a change of the definition that changes "
    "results; a pipeline whose mode is continuous is streamed again then."
)


def replay_dag(definition: Definition) -> DAG:
    """The replay DAG of a pipeline."""
    with pipeline_dag(
        definition,
        "replay",
        schedule=None,
        about=ABOUT,
        params={"promote": forms.promote(), "reason": forms.reason("Airflow's audit log")},
        max_active_runs=1,
    ) as dag:
        replay = ReplayOperator(task_id="replay", pipeline=definition.name, **on_spark(definition))
        wanted = ShortCircuitOperator(task_id="wanted", python_callable=yes, op_args=["{{ params.promote }}"])
        promote = PromoteOperator(task_id="promote", pipeline=definition.name)
        replay >> wanted >> promote
        if definition.pipeline.orchestration.mode == "continuous":
            promote >> TriggerDagRunOperator(
                task_id="stream", trigger_dag_id=f"{definition.name}__continuous", trigger_run_id="replay-{{ run_id }}",
                skip_when_already_exists=True,
            )  # fmt: skip
    return dag
