"""`<pipeline>__continuous`: one long-lived query, looked after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import DAG

from twinstream_airflow.dags import forms
from twinstream_airflow.dags.assets import stream_asset
from twinstream_airflow.dags.common import pipeline_dag
from twinstream_airflow.operators.continuous import ContinuousOperator

if TYPE_CHECKING:
    from twinstream.pipeline import Definition

ABOUT = (
    "Streams the topics as one long-lived query, with the same exactly-once commits as micro-batches. No worker is "
    "held while it runs: Airflow watches its heartbeat, starts it again when it dies or hangs, and lets it end in "
    "order when it is stopped, when this run is marked or cleared, or when this DAG is paused."
)


def continuous_dag(definition: Definition) -> DAG:
    """The continuous DAG of a pipeline that reads topics."""
    policy = definition.pipeline.orchestration
    with pipeline_dag(
        definition,
        "continuous",
        schedule="@once" if policy.mode == "continuous" else None,
        about=ABOUT,
        params={"every": forms.every(policy.every), "seconds": forms.seconds(), "drain": forms.drain()},
        max_active_runs=16,
    ) as dag:
        ContinuousOperator(
            task_id="stream",
            pipeline=definition.name,
            spark=policy.spark,
            every="{{ params.every }}",
            seconds="{{ params.seconds }}",
            drain="{{ params.drain }}",
            visit=policy.duration("visit"),
            restarts=policy.restarts,
            restart_delay=policy.duration("restart_delay"),
            outlets=[stream_asset(definition.name)],
        )
    return dag
