"""A pipeline whose sink is a topic: what brings the topic up to the table, and what was served to it in real time."""

from __future__ import annotations

from twinstream.engine.opened import Opened
from twinstream.ledger import Generation
from twinstream.pipeline import Definition
from twinstream.runtime.produce import Producing
from twinstream.runtime.served import plan_served, refuse_while_served
from twinstream.sinks.kafka import KafkaSink
from twinstream.sources.kafka.source import KafkaSource


def producing(opened: Opened, definition: Definition, generation: Generation) -> Producing | None:
    """What brings the pipeline's topic up to its table, if it has one."""
    sink = definition.pipeline.sink
    if not isinstance(sink, KafkaSink):
        return None
    table = opened.table(definition, generation)
    return Producing(opened.spark, definition, sink, opened.ledger, generation, table, opened.places(definition))


def produced(opened: Opened, definition: Definition) -> int | None:
    """Up to which txid rows are in the pipeline's topic; None where it has none."""
    generation = opened.ledger.generations.current(definition.name)
    if generation is None or not isinstance(definition.pipeline.sink, KafkaSink):
        return None
    table = opened.table(definition, generation)
    return table.produced() if table.exists() else 0


def settle_served(opened: Opened, definition: Definition, generation: Generation) -> None:
    """What was served in real time is planned before anything else is; refused while it is being served."""
    pipeline = definition.pipeline
    if isinstance(pipeline.source, KafkaSource) and isinstance(pipeline.sink, KafkaSink):
        refuse_while_served(opened.ledger, generation)
        plan_served(opened.ledger, definition, generation.id, opened.places(definition))
