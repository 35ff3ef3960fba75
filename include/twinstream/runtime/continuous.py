"""Continuous mode: a long-lived Structured Streaming query whose batches become txids, committed by the same runner.

The query says when and how far: what its offset log has for a batch becomes a planned range before anything is read.
The ledger says from where: every run starts a query of its own behind the last planned range, so that a checkpoint that
is lost, old or another pipeline's cannot matter.
"""

from __future__ import annotations

import json
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinstream.errors import ProcessingFailed, TwinstreamError
from twinstream.failpoints import durable
from twinstream.ledger import Generation, Ledger, Planned, PlanRaced
from twinstream.ledger.journal import PAUSED, RESUMED
from twinstream.ledger.runs import Run, Wanted
from twinstream.pipeline import Definition
from twinstream.runtime.drain import Drained, Runner
from twinstream.runtime.heartbeat import run_heartbeat
from twinstream.runtime.holder import is_dead, new_holder
from twinstream.runtime.plan import LedgerHistory
from twinstream.runtime.progress import Progress
from twinstream.sources.base import Places
from twinstream.sources.kafka.source import KafkaSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

KIND = "continuous"
ALIVE_SECONDS = 30.0
"""A run that has not shown itself for so long is taken to be dead."""
NOTE_SECONDS = 2.0


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
    """How many records a batch of the query may have: what is more waits in the topic."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Set by whoever wants it to end after the batch that it is at."""

    def __post_init__(self) -> None:
        self._turn = threading.Lock()
        self._ended = False
        self._failed: BaseException | None = None
        self._checkpoints = self.places.home / "checkpoints" / self.definition.name / self.generation.name
        self._checkpoint = self._checkpoints / secrets.token_hex(4)

    def run(self, runner: Runner) -> Drained:
        """Runs until it is asked to stop; what is planned by then is committed."""
        with runner.holding() as drain_planned:
            wanted = Wanted(self.generation.id, KIND, self._frontier(), self.definition.hash, {})
            run = self.ledger.runs.start(
                wanted, new_holder(), ALIVE_SECONDS, is_dead=is_dead, context=self.request.context
            )
            try:
                with run_heartbeat(self.ledger, run, ALIVE_SECONDS):
                    drain_planned()
                    self._stream(run, drain_planned)
            except BaseException as error:
                with suppress(TwinstreamError):
                    self.ledger.runs.fail(run, str(error).splitlines()[0][:500] if str(error) else type(error).__name__)
                raise
            self.ledger.runs.finish(run, self._facts(None))
        return runner.drained

    def _stream(self, run: Run, drain_planned: Callable[[], None]) -> None:
        def batch(_rows: DataFrame, number: int) -> None:
            with self._turn:
                if self._ended:
                    return
                try:
                    self._plan(_ends(self._checkpoint, number))
                    drain_planned()
                except BaseException as error:
                    self._failed = error
                    raise

        self._forget_checkpoints()
        rows = self.source.stream(self.spark(), self.places, self._history(), self.most_records)
        writer = rows.writeStream.foreachBatch(batch).option("checkpointLocation", str(self._checkpoint))
        every = self.request.every
        query = (writer.trigger(processingTime=every) if every else writer.trigger(availableNow=True)).start()
        try:
            self._watch(run, query)
        finally:
            with self._turn:  # the batch that is under way may end; no other one begins
                self._ended = True
            query.stop()
            self._forget_checkpoints()
        if self._failed is not None:
            raise self._failed
        if (error := query.exception()) is not None:
            raise ProcessingFailed(
                f"The query of {self.definition.name} ended: {str(error).splitlines()[0]}",
                untouched="What was committed stays.",
                next_step="Start it again: it goes on behind the last txid.",
            )

    def _forget_checkpoints(self) -> None:
        """Those of runs that were killed too: who holds the lease is the only one."""
        with durable("continuous.forget"):
            shutil.rmtree(self._checkpoints, ignore_errors=True)

    def _watch(self, run: Run, query: StreamingQuery) -> None:
        deadline = None if self.request.seconds is None else time.monotonic() + self.request.seconds
        noted = 0.0
        while query.isActive and self._failed is None and not self.stop.wait(0.2):
            now = time.monotonic()
            if deadline is not None and now >= deadline:
                return
            if now - noted >= NOTE_SECONDS:
                noted = now
                self.ledger.runs.note(run, self._facts(query))
                if self._is_paused():
                    self.progress.note(f"{self.definition.name} was paused: the query ends")
                    return

    def _plan(self, ends: Mapping[str, Any]) -> None:
        """Logs everything up to where the query has come as the next txids; nothing where that is planned already."""
        while True:
            history = self._history()
            size = self.definition.pipeline.batch_records
            ranges = self.source.ranges_to(self.places, history, ends, size)
            if not ranges:
                return
            with suppress(PlanRaced):
                planned = [Planned(one) for one in ranges]
                self.ledger.batches.plan(
                    self.generation.id, history.generation.last_txid, planned, self.definition.hash
                )
                self.progress.planned(len(ranges), sum(one.records for one in ranges))
                return

    def _history(self) -> LedgerHistory:
        return LedgerHistory(self.ledger, self.ledger.generations.get(self.generation.id))

    def _frontier(self) -> int:
        return self.ledger.generations.get(self.generation.id).frontier

    def _is_paused(self) -> bool:
        newest = self.ledger.journal.last(self.generation.id, (PAUSED, RESUMED))
        return newest is not None and newest["kind"] == PAUSED

    def _facts(self, query: StreamingQuery | None) -> dict[str, Any]:
        """What a page or a supervisor wants to know."""
        found: dict[str, Any] = {"frontier": self._frontier(), "every": self.request.every}
        last: Any = query.lastProgress if query is not None else None
        if last:
            metrics = [source["metrics"] or {} for source in last["sources"]]
            found |= {
                "batch": last["batchId"],
                "records_per_second": last["processedRowsPerSecond"],
                "behind": max((float(one.get("maxOffsetsBehindLatest", 0)) for one in metrics), default=0.0),
                "seconds": last["batchDuration"] / 1000,
            }
        return found


def _ends(checkpoint: Path, batch: int) -> Mapping[str, Any]:
    """How far the query has come with a batch, by its offset log: a version, settings, then a line for each source."""
    lines = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()
    found: dict[str, Any] = json.loads(lines[2])
    return found
