"""Continuous and real-time mode: long-lived queries, under the same lease as a drain."""

from __future__ import annotations

import threading

from twinstream.engine.opened import Opened
from twinstream.engine.run import run
from twinstream.engine.topic import settle_served
from twinstream.errors import Refused
from twinstream.ledger import Generation
from twinstream.pipeline import Definition
from twinstream.runtime.continuous import Continuous, ContinuousRequest
from twinstream.runtime.drain import Drained
from twinstream.runtime.progress import Progress
from twinstream.runtime.realtime import RealTime, RealTimeRequest, require_served
from twinstream.sources.kafka.source import RECORD_BYTES, KafkaSource


def continuous(
    opened: Opened, name: str, request: ContinuousRequest, progress: Progress, stop: threading.Event
) -> Drained:
    """Streams until it is asked to stop, through the same ledger and the same commit."""
    definition = opened.definition(name)
    source = definition.pipeline.source
    if not isinstance(source, KafkaSource):
        raise Refused(
            f"Continuous mode streams topics; {name} reads {source.kind}.",
            next_step=f"`twinstream drain {name}` takes what is new, and Airflow watches for it.",
        )
    _require_own_spark(opened, "Continuous mode")
    generation = opened.generation(definition, create=True)
    opened.require_agreement(definition, generation)
    settle_served(opened, definition, generation)
    query = Continuous(
        opened.spark, source, definition, opened.ledger, generation, opened.places(definition), progress, request,
        _most_records(opened, definition, generation), opened.settings.group_seconds, stop,
    )  # fmt: skip
    context = {**request.context, "mode": "continuous"}
    return run(
        opened, definition, generation, progress, query.run, wait_seconds=request.wait_seconds, context=context
    )  # fmt: skip


def real_time(
    opened: Opened, name: str, request: RealTimeRequest, progress: Progress, stop: threading.Event
) -> Drained:
    """Serves from topic to topic until it is asked to stop, at-least-once, under the pipeline's lease."""
    definition = opened.definition(name)
    require_served(definition.pipeline)
    _require_own_spark(opened, "Real-time mode")
    generation = opened.generation(definition, create=True)
    opened.require_agreement(definition, generation)
    query = RealTime(
        opened.spark, definition, definition.columns(opened.spark()), opened.ledger, generation,
        opened.places(definition), progress, request, stop,
    )  # fmt: skip
    return run(
        opened, definition, generation, progress, query.run,
        wait_seconds=request.wait_seconds, context=request.context,
    )  # fmt: skip


def _require_own_spark(opened: Opened, mode: str) -> None:
    if opened.settings.master.startswith("sc://"):
        raise Refused(
            f"{mode} needs a Spark of its own: a Connect server would run the query without the ledger.",
            next_step="Set TWINSTREAM_MASTER to local[*] or a cluster's master, or use spark-submit.",
        )


def _most_records(opened: Opened, definition: Definition, generation: Generation) -> int:
    """As many as one group should take, by the rate seen so far: a burst waits in the topic, not in memory."""
    if generation.bytes_per_second is None:
        return definition.pipeline.batch_records
    return max(1_000, int(generation.bytes_per_second * opened.settings.group_seconds / RECORD_BYTES))
