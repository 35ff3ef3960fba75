"""Continuous mode: a long-lived Structured Streaming query whose batches become txids, committed by the same runner.

The query says when and how far: what its offset log has for a batch becomes a planned range before anything is read.
What waits beyond one batch when it would begin is drained first, as a drain would.
The ledger says from where: every run starts a query of its own behind the last planned range, so that a checkpoint that
is lost, old or another pipeline's cannot matter.
"""

from __future__ import annotations

import secrets
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinstream.errors import Fenced, LeaseHeld, ProcessingFailed, TwinstreamError
from twinstream.failpoints import durable
from twinstream.ledger import Generation, Ledger, Planned, PlanRaced
from twinstream.ledger.generations import CURRENT
from twinstream.ledger.runs import CONTINUOUS, Run
from twinstream.pipeline import Definition
from twinstream.runtime.drain import Drained, Runner
from twinstream.runtime.explain import one_line
from twinstream.runtime.plan import LedgerHistory, plan
from twinstream.runtime.progress import Progress
from twinstream.runtime.query import Facts, is_paused, logged, logged_offsets, watch
from twinstream.runtime.rate import GROWTH
from twinstream.runtime.rehearse import rehearse
from twinstream.runtime.stopping import Stops
from twinstream.sources.base import Places
from twinstream.sources.kafka.source import RECORD_BYTES, KafkaSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ASKED, PAUSE, DEADLINE, DRAINED, TOLD = "stop asked", "paused", "time is up", "drained", "told to end"
"""Why a run comes to its end."""
FULL = 0.9
"""A batch with at least this part of the records that it may have has left others waiting."""
CATCH_UP = 4
"""As much as so many batches is planned at a time while it catches up."""


@dataclass(frozen=True)
class ContinuousRequest:
    """What a user asks of a continuous run."""

    every: str | None = "5 seconds"
    """How often the query looks for new records; None: it takes what is there now, and ends."""
    seconds: float | None = None
    """End after so long."""
    wait_seconds: float = 90.0
    """How long to stand by while another runner holds the pipeline."""
    context: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    """What a batch of the query held, and how long it took to commit."""

    records: int = 0
    seconds: float = 0.0


def wanted_records(last: Done, most: int, batch_seconds: float) -> int:
    """How many records batches should have at most, after one like this: only a full one says anything.

    Four times as many as long as a full batch takes a quarter of its time or less; half, where it takes twice its time.
    """
    if last.records < FULL * most:
        return most
    if last.seconds * GROWTH <= batch_seconds:
        return int(most * GROWTH)
    return max(1, most // 2) if last.seconds > 2 * batch_seconds else most


@dataclass
class Continuous:
    """One run of a pipeline in continuous mode."""

    spark: Callable[[], SparkSession]
    source: KafkaSource
    definition: Definition
    ledger: Ledger
    generation: Generation
    places: Places
    progress: Progress
    request: ContinuousRequest
    most_records: int
    """How many records a batch of the query may have at first: what is more waits in the topic."""
    batch_seconds: float
    """How long a full batch may take; the query's batches are made larger or smaller for it."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Set by whoever wants it to end after the batch that it is at."""

    def __post_init__(self) -> None:
        self._turn = threading.Lock()
        self._ended = False
        self._failed: BaseException | None = None
        self._why = DRAINED
        self._deadline: float | None = None
        self._stops = Stops(self.ledger, self.generation.id)
        self._checkpoints = self.places.home / "checkpoints" / self.definition.name / self.generation.name
        self._checkpoint = self._checkpoints
        self._last = Done()
        self._behind: int | None = None
        self._pace = 0.0
        self._epoch: int | None = None
        self._rehearsed = False

    def run(self, runner: Runner) -> Drained:
        """Runs until it is asked to stop; what is planned by then is committed."""
        runner.waits = self._stands_by
        if self.request.seconds is not None:
            self._deadline = time.monotonic() + self.request.seconds
        try:
            self._run(runner)
        except LeaseHeld:
            if self._why == DRAINED:
                raise
        runner.drained.ended = self._why
        return runner.drained

    def _stands_by(self) -> bool:
        """Whether to go on waiting for the lease of another runner."""
        self._require_current()
        self._rehearse()
        return not self._is_over()

    def _rehearse(self) -> None:
        """Once, as soon as there is a committed txid to do it with; who cannot rehearse stands by all the same."""
        history = self._history()
        frontier, holder = history.generation.frontier, self.ledger.leases.holder(self.generation.id)
        if self._rehearsed or not frontier or holder is None:
            return
        self._rehearsed = True
        folder = self._new_checkpoint(holder[1])
        try:
            [newest] = self.ledger.batches.get(self.generation.id, frontier, frontier)
            rehearse(self.spark(), self.definition, self.places, newest, history, folder)
            self.progress.note(f"ready to take {self.definition.name} over")
        except Exception as error:
            self.progress.note(f"a take-over could not be rehearsed: {one_line(error)}")
        finally:
            with durable("continuous.forget"):
                shutil.rmtree(folder, ignore_errors=True)

    def _require_current(self) -> None:
        if self.ledger.generations.get(self.generation.id).state != CURRENT:
            raise Fenced(
                f"Another generation of {self.definition.name} has taken the place of generation "
                f"{self.generation.number}.",
                next_step="Start it again: it goes on with the new one.",
            )

    def _require_held(self) -> None:
        """Whoever takes over deletes the checkpoint: what a query that wakes up then says of it is not the cause."""
        holder = self.ledger.leases.holder(self.generation.id)
        if holder is not None and holder[1] != self._epoch:
            raise Fenced(
                f"Another runner has taken over {self.definition.name} (epoch {holder[1]}).",
                untouched="Nothing was committed since then.",
                next_step="Let it work; `twinstream status` shows who it is.",
            )

    def _run(self, runner: Runner) -> None:
        with runner.holding() as drain_planned:
            self._epoch = runner.drained.epoch
            self._require_current()
            with logged(self.ledger, self.generation, CONTINUOUS, self.request.context, self._end) as run:
                more = True
                while more:  # how large its batches may be is fixed when a query starts
                    runner.ending = self._should_end
                    drain_planned()
                    self._catch_up(run, drain_planned)
                    runner.ending = lambda: False
                    more = not self._is_over() and self._stream(run, drain_planned)

    def _catch_up(self, run: Run, drain_planned: Callable[[], None]) -> None:
        """Drains what is more than one batch in large groups: a query would wait for its trigger after each batch."""
        if self.request.every is None:
            return
        while not self._is_over() and (behind := self._waiting()) > self.most_records:
            if is_paused(self.ledger, self.generation.id):
                self._why = PAUSE
                return
            self._behind = behind
            self.ledger.runs.note(run, self._facts(None))
            began = time.monotonic()
            size = self.definition.pipeline.batch_records
            found = plan(
                self.ledger, self.definition, self.generation.id, self.places, size,
                CATCH_UP * self.most_records * RECORD_BYTES,
            )  # fmt: skip
            if found.problem is not None:
                raise found.problem
            for warning in found.warnings:
                self.progress.note(warning)
            self.progress.planned(len(found.txids), found.records)
            drain_planned()
            self._last = Done(found.records, time.monotonic() - began)
            self._pace = found.records / self._last.seconds

    def _stream(self, run: Run, drain_planned: Callable[[], None]) -> bool:
        """Runs a query to its end; whether there is to be another one, with batches of another size."""

        def batch(_rows: DataFrame, number: int) -> None:
            with self._turn:
                if self._ended:
                    return
                try:
                    began = time.monotonic()
                    records = self._plan(logged_offsets(self._checkpoint, number))
                    self._behind = self._waiting()
                    drain_planned()
                    self._last = Done(records, time.monotonic() - began)
                    self._pace = records / self._last.seconds
                except BaseException as error:
                    self._failed = error
                    raise

        self._ended, self._last = False, Done()
        assert self._epoch is not None
        self._checkpoint = self._new_checkpoint(self._epoch)
        self._forget_checkpoints()
        rows = self.source.stream(self.spark(), self.places, self._history(), self.most_records)
        writer = rows.writeStream.foreachBatch(batch).option("checkpointLocation", str(self._checkpoint))
        every = self.request.every
        query = (writer.trigger(processingTime=every) if every else writer.trigger(availableNow=True)).start()
        try:
            size = self._watch(run, query)
        finally:
            with self._turn:  # the batch that is under way may end; no other one begins
                self._ended = True
            query.stop()
            self._forget_checkpoints()
        if self._failed is not None:
            raise self._failed
        if (error := query.exception()) is not None:
            self._require_held()
            raise ProcessingFailed(
                f"The query of {self.definition.name} ended: {str(error).splitlines()[0]}",
                untouched="What was committed stays.",
                next_step="Start it again: it goes on behind the last txid.",
            )
        self.most_records = size or self.most_records
        return size is not None and not self._is_over()

    def _new_checkpoint(self, epoch: int) -> Path:
        return self._checkpoints / f"{epoch}-{secrets.token_hex(4)}"

    def _forget_checkpoints(self) -> None:
        """Those of runs that were killed too, but of no later epoch: one that wakes up leaves its successor alone."""
        assert self._epoch is not None
        with durable("continuous.forget"):
            for found in self._checkpoints.glob("*-*"):
                if int(found.name.partition("-")[0]) <= self._epoch:
                    shutil.rmtree(found, ignore_errors=True)

    def _watch(self, run: Run, query: StreamingQuery) -> int | None:
        """Returns when the query should end; another size of its batches, if that is why."""
        size: int | None = None

        def is_over() -> bool:
            nonlocal size
            if self._failed is not None or self._is_over():
                return True
            wanted = wanted_records(self._last, self.most_records, self.batch_seconds)
            if wanted != self.most_records:
                size = wanted
                self.progress.note(f"batches of at most {size} records from now on")
            return size is not None

        if watch(self.ledger, run, query, self.progress, is_over, lambda: self._facts(query)):
            self._why = PAUSE
        return size

    def _should_end(self) -> bool:
        """Whether no further group should begin."""
        asked = self.stop.is_set() or self._is_time_up() or self._stops.asked()
        return asked or is_paused(self.ledger, self.generation.id)

    def _is_time_up(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    def _is_over(self) -> bool:
        """Whether somebody or the clock wants it to end; remembers which."""
        if self.stop.wait(0.2):
            self._why = TOLD
        elif self._is_time_up():
            self._why = DEADLINE
        elif self._stops.asked():
            self._why = ASKED
            self.progress.note(f"{self.definition.name} was asked to stop: {self._stops.reason}")
        return self._why != DRAINED

    def _plan(self, ends: Mapping[str, Any]) -> int:
        """Logs all up to where the query has come as the next txids, if it is not planned already; how many records."""
        while True:
            history = self._history()
            size = self.definition.pipeline.batch_records
            ranges = self.source.ranges_to(self.places, history, ends, size)
            if not ranges:
                return 0
            with suppress(PlanRaced):
                planned = [Planned(one) for one in ranges]
                self.ledger.batches.plan(
                    self.generation.id, history.generation.last_txid, planned, self.definition.hash
                )
                records = sum(one.records for one in ranges)
                self.progress.planned(len(ranges), records)
                return records

    def _waiting(self) -> int:
        """How many offsets no txid has yet; a broker that does not say so is no reason to end."""
        try:
            return self.source.waiting(self.places, self._history())
        except TwinstreamError:
            return self._behind or 0

    def _history(self) -> LedgerHistory:
        return LedgerHistory(self.ledger, self.ledger.generations.get(self.generation.id))

    def _end(self) -> Facts:
        return self._facts(None) | {"ended": self._why, "reason": self._stops.reason}

    def _facts(self, query: StreamingQuery | None) -> Facts:
        """What a page or a supervisor wants to know."""
        frontier = self.ledger.generations.get(self.generation.id).frontier
        found: Facts = {"frontier": frontier, "every": self.request.every}
        if self._behind is not None:
            found |= {
                "records_per_second": self._pace,
                "most_records": self.most_records,
                "behind": self._behind,
                "seconds": self._last.seconds,
            }
        last: Any = query.lastProgress if query is not None else None
        return found | ({"batch": last["batchId"]} if last else {})
