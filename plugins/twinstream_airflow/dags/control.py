"""`<pipeline>__control`: what a person decides, with a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG

from twinstream.sources.kafka.source import KafkaSource
from twinstream_airflow.dags import forms
from twinstream_airflow.dags.common import pipeline_dag
from twinstream_airflow.operators.control import MODES, ControlOperator

if TYPE_CHECKING:
    from twinstream.pipeline import Definition

_TASKS = {"microbatch": "drain", "continuous": "stream"}
ABOUT = (
    "Release or discard a txid that a gate holds or that cannot be processed, bring mended records back, pause or "
    "resume a pipeline, stop whoever runs it, hand it over between micro-batches and a continuous query. What was "
    "decided, by whom and why stays in Airflow's audit log and in the ledger."
)


def control_dag(definition: Definition) -> DAG:
    """The control DAG of a pipeline."""
    name = definition.name
    modes = MODES if isinstance(definition.pipeline.source, KafkaSource) else MODES[:1]
    with pipeline_dag(
        definition,
        "control",
        schedule=None,
        about=ABOUT,
        params={
            "action": forms.action(),
            "reason": forms.reason("the ledger and in Airflow's audit log"),
            "txid": forms.txid(),
            "file": forms.file(),
            "to": forms.to(modes),
        },
        max_active_runs=1,
    ) as dag:
        decide = ControlOperator(
            task_id="decide",
            pipeline=name,
            action="{{ params.action }}",
            txid="{{ params.txid }}",
            file="{{ params.file }}",
            to="{{ params.to }}",
            goes_on={mode: _TASKS[mode] for mode in modes},
            reason="{{ params.reason }}",
        )
        for mode in modes:
            decide >> TriggerDagRunOperator(
                task_id=_TASKS[mode], trigger_dag_id=f"{name}__{mode}", trigger_run_id="control-{{ run_id }}",
                skip_when_already_exists=True,
            )  # fmt: skip
    return dag
