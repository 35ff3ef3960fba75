"""`twinstream__maintenance`: the ledger's backup, then fold, clean and scrub of every pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, TaskGroup, TriggerRule

from twinstream_airflow.dags import forms
from twinstream_airflow.dags.common import QUICK, START, on_spark, timetable
from twinstream_airflow.notify import notifiers
from twinstream_airflow.operators.upkeep import BackupOperator, CleanOperator, FoldOperator, ScrubOperator

if TYPE_CHECKING:
    from twinstream.pipeline import Definition

ABOUT = (
    "Every night: a backup of the ledger; then, pipeline by pipeline, fold (reading stays quick, other engines "
    "see the newest result), clean (what no reader needs any more goes) and scrub (are the stored rows still "
    "those that were committed?)."
)


def maintenance_dag(definitions: Sequence[Definition]) -> DAG:
    """The maintenance DAG of all pipelines."""
    with DAG(
        "twinstream__maintenance",
        description=ABOUT.partition(";")[0],
        schedule=timetable("0 1 * * *"),
        start_date=START,
        catchup=False,
        max_active_runs=1,
        max_active_tasks=2,
        doc_md=ABOUT,
        tags={"twinstream", "maintenance"},
        params={"pipelines": forms.pipelines([one.name for one in definitions]), "backups": forms.backups()},
        default_args={
            "owner": "twinstream",
            "retries": 2,
            "retry_delay": timedelta(minutes=1),
            "execution_timeout": QUICK,
        },
    ) as dag:
        backup = BackupOperator(task_id="backup", keep="{{ params.backups }}")
        for definition in definitions:
            _upkeep(definition).set_upstream(backup)
    return dag


def _upkeep(definition: Definition) -> TaskGroup:
    policy = definition.pipeline.orchestration
    whose: Any = {"owner": policy.owner, "on_failure_callback": notifiers(policy.notify) or None}
    with TaskGroup(definition.name, default_args=whose) as group:
        fold = FoldOperator(
            task_id="fold", pipeline=definition.name, trigger_rule=TriggerRule.ALL_DONE, **on_spark(definition)
        )
        clean = CleanOperator(task_id="clean", pipeline=definition.name, trigger_rule=TriggerRule.NONE_FAILED)
        scrub = ScrubOperator(
            task_id="scrub", pipeline=definition.name, trigger_rule=TriggerRule.ALL_DONE, **on_spark(definition)
        )
        fold >> clean >> scrub
    return group
