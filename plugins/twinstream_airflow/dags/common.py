"""What all DAGs of a pipeline share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, CronTriggerTimetable

from twinstream_airflow.notify import notifiers

if TYPE_CHECKING:
    from airflow.sdk import Param

    from twinstream.pipeline import Definition

START = datetime(2026, 1, 1, tzinfo=UTC)
QUICK = timedelta(minutes=10)
"""For tasks that only look into the ledger and list files."""


def pipeline_dag(
    definition: Definition,
    family: str,
    *,
    schedule: Any,
    about: str,
    params: Mapping[str, Param],
    **options: Any,
) -> DAG:
    """A DAG `<pipeline>__<family>` with the owner, tags, retries and notifiers of the definition."""
    policy = definition.pipeline.orchestration
    return DAG(
        f"{definition.name}__{family}",
        description=about.partition(".")[0],
        schedule=schedule,
        start_date=START,
        catchup=False,
        params=dict(params),
        doc_md=document(definition, about),
        tags={"twinstream", definition.name, family, *policy.tags},
        default_args={
            "owner": policy.owner,
            "retries": policy.retries,
            "retry_delay": policy.duration("retry_delay"),
            "retry_exponential_backoff": 2.0,
            "max_retry_delay": timedelta(minutes=10),
            "execution_timeout": QUICK,
        },
        on_failure_callback=notifiers(policy.notify) or None,
        **options,
    )


def on_spark(definition: Definition) -> dict[str, Any]:
    """What every task gets that works on Spark: the connection, a slot of the pool, and its time."""
    policy = definition.pipeline.orchestration
    return {"spark": policy.spark, "pool": policy.pool, "execution_timeout": policy.duration("timeout")}


def timetable(cron: str | None) -> CronTriggerTimetable | None:
    """A schedule of the definition as Airflow takes it."""
    return None if cron is None else CronTriggerTimetable(cron, timezone="UTC")


def document(definition: Definition, about: str) -> str:
    """What the DAG's page says: only what the definition says, so that it changes with it and with nothing else."""
    pipeline = definition.pipeline
    source = getattr(pipeline.source, "path", pipeline.source.kind)
    return "\n".join(
        (
            f"### {definition.name}",
            "",
            about,
            "",
            "| | |",
            "| --- | --- |",
            f"| Definition | `{definition.file.name}` |",
            f"| Guarantee | {definition.guarantee.delivery.text} |",
            f"| Source | `{source}` ({pipeline.source.kind}) |",
            f"| Sink | `{pipeline.sink.place}` ({pipeline.sink.kind}) |",
            f"| Repair | {'by itself' if pipeline.orchestration.auto_repair else 'after approval by a person'} |",
        )
    )
