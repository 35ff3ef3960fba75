"""Micro-batch: plans what is new in the source as txids, and drains them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from twinstream.engine.opened import Opened
from twinstream.engine.run import run
from twinstream.engine.topic import producing, settle_served
from twinstream.errors import TwinstreamError
from twinstream.ledger import Generation
from twinstream.pipeline import Definition
from twinstream.runtime.drain import Drained, Runner
from twinstream.runtime.plan import PlanResult
from twinstream.runtime.plan import plan as plan_txids
from twinstream.runtime.progress import Progress
from twinstream.runtime.stopping import Stops
from twinstream.sources.kafka.source import KafkaSource

ENOUGH_BYTES = 8 * 1024**3
"""Planning looks this far ahead at a time."""


@dataclass(frozen=True)
class DrainRequest:
    """What a user asks of a drain."""

    max_batches: int | None = None
    batch_records: int | None = None
    group: int | None = None
    wait_seconds: float = 90.0
    context: Mapping[str, str] = field(default_factory=dict)


def plan(opened: Opened, definition: Definition, generation: Generation, batch_records: int | None) -> PlanResult:
    """Logs what is new in the source as txids."""
    settle_served(opened, definition, generation)
    wanted = batch_records or definition.pipeline.batch_records
    return plan_txids(opened.ledger, definition, generation.id, opened.places(definition), wanted, ENOUGH_BYTES)


def drain(
    opened: Opened, definition: Definition, generation: Generation, request: DrainRequest, progress: Progress
) -> Drained:
    """Plans and drains everything that is new to a generation."""
    problems: list[TwinstreamError] = []
    stops = Stops(opened.ledger, generation.id)
    # A drain takes what is in a topic when it begins: it would have no end while data keeps coming.
    never_ends = isinstance(definition.pipeline.source, KafkaSource)
    caught_up = False

    def plan_more() -> bool:
        nonlocal caught_up
        if stops.asked() or (never_ends and caught_up):
            return False
        found = plan(opened, definition, generation, request.batch_records)
        caught_up = not found.more
        if found.problem is not None:
            problems[:] = [found.problem]
        for warning in found.warnings:
            progress.note(warning)
        if found.txids:
            progress.planned(len(found.txids), found.records)
            txids, records, _, _ = opened.ledger.batches.backlog(generation.id)
            progress.backlog(txids, records)
        return bool(found.txids)

    def work(runner: Runner) -> Drained:
        runner.ending = stops.asked
        return runner.run(plan_more)

    opened.require_agreement(definition, generation)
    plan_more()
    drained = Drained()
    topic = producing(opened, definition, generation)
    if opened.ledger.batches.backlog(generation.id)[0] or (topic is not None and topic.is_behind()):
        drained = run(
            opened, definition, generation, progress, work, wait_seconds=request.wait_seconds,
            context=request.context, max_batches=request.max_batches, group=request.group,
        )  # fmt: skip
    if problems:
        raise problems[0]
    return drained
