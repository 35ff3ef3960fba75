"""`<pipeline>__repair`: mends what reconciliation found, when a person or the pipeline's policy says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG

from twinstream_airflow.dags import forms
from twinstream_airflow.dags.common import on_spark, pipeline_dag
from twinstream_airflow.dags.recompute import CHOSEN
from twinstream_airflow.operators.frontier import FrontierOperator
from twinstream_airflow.operators.repair import FindingOperator, RepairOperator
from twinstream_airflow.operators.verdict import VerdictOperator

if TYPE_CHECKING:
    from twinstream.pipeline import Definition

ABOUT = (
    "Looks at the finding again, asks a person unless the pipeline's policy is to repair by itself, then makes "
    "the batch result the newest base and proves by another reconciliation that it helped. Nobody answering in "
    "time means no. A repair can be taken back: `twinstream repair --undo`."
)
_FINDING = "{% set found = ti.xcom_pull(task_ids='finding') %}"
_BODY = (
    _FINDING + "Rows that differ:\n\n{% for kind, count in found['differences'].items() %}- {{ count }} {{ kind }}\n"
    "{% endfor %}\n{% for cause in found['causes'] %}{{ cause }}\n{% endfor %}\n"
    "[Report]({{ found['report'] }}) · [Data Docs]({{ found['data_docs'] }})"
)


def repair_dag(definition: Definition) -> DAG:
    """The repair DAG of a pipeline."""
    name = definition.name
    policy = definition.pipeline.orchestration
    with pipeline_dag(
        definition,
        "repair",
        schedule=None,
        about=ABOUT,
        params={"frontier": forms.frontier(), "dry_run": forms.dry_run(), "force": forms.force()},
        max_active_runs=16,
    ) as dag:
        frontier = FrontierOperator(task_id="frontier", pipeline=name, frontier="{{ params.frontier }}")
        finding = FindingOperator(
            task_id="finding", pipeline=name, frontier=CHOSEN, only_look="{{ params.dry_run }}", **on_spark(definition)
        )
        repair = RepairOperator(
            task_id="repair", pipeline=name, frontier=CHOSEN, force="{{ params.force }}", **on_spark(definition)
        )
        verdict = VerdictOperator(task_id="verdict", pipeline=name, after="repair")
        if policy.auto_repair:
            frontier >> finding >> repair >> verdict
        else:
            approve = ApprovalOperator(
                task_id="approve",
                subject=f"{_FINDING}Repair {name} as of txid {{{{ found['frontier'] }}}}?",
                body=_BODY,
                defaults="Reject",
                response_timeout=policy.duration("approval_timeout"),
                ignore_downstream_trigger_rules=True,
                execution_timeout=None,
            )
            frontier >> finding >> approve >> repair >> verdict
    return dag
