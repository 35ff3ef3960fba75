"""`<pipeline>__control`: what a person decides, with a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG

from twinstream_airflow.dags import forms
from twinstream_airflow.dags.common import pipeline_dag
from twinstream_airflow.operators.control import ControlOperator

if TYPE_CHECKING:
    from twinstream.pipeline import Definition

ABOUT = (
    "Release or discard a txid that a gate holds or that cannot be processed, bring mended records back, pause or "
    "resume micro-batches. What was decided, by whom and why stays in Airflow's audit log and in the ledger."
)


def control_dag(definition: Definition) -> DAG:
    """The control DAG of a pipeline."""
    name = definition.name
    with pipeline_dag(
        definition,
        "control",
        schedule=None,
        about=ABOUT,
        params={"action": forms.action(), "txid": forms.txid(), "file": forms.file(), "reason": forms.reason()},
        max_active_runs=1,
    ) as dag:
        decide = ControlOperator(
            task_id="decide",
            pipeline=name,
            action="{{ params.action }}",
            txid="{{ params.txid }}",
            file="{{ params.file }}",
            reason="{{ params.reason }}",
        )
        drain = TriggerDagRunOperator(
            task_id="drain", trigger_dag_id=f"{name}__microbatch", trigger_run_id="control-{{ run_id }}",
            skip_when_already_exists=True,
        )  # fmt: skip
        decide >> drain
    return dag
