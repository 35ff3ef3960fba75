"""Everything that can be done to a pipeline, by its name."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from twinstream.engine import control, generations, stream, topic
from twinstream.engine import drain as microbatch
from twinstream.engine.drain import DrainRequest
from twinstream.engine.opened import Opened
from twinstream.ledger import Generation
from twinstream.pipeline import Definition
from twinstream.runtime.clean import Cleaned, clean
from twinstream.runtime.continuous import ContinuousRequest
from twinstream.runtime.drain import Drained
from twinstream.runtime.fold import Folded, fold
from twinstream.runtime.plan import PlanResult
from twinstream.runtime.progress import Progress
from twinstream.runtime.read import read_aside, read_result
from twinstream.runtime.realtime import RealTimeRequest
from twinstream.runtime.reinject import Reinjected, reinject
from twinstream.sinks.delta import DeltaStore
from twinstream.sinks.kafka import KafkaSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Engine(Opened):
    """The verbs. What takes more than a few lines has a room of its own beside this one."""

    def plan(self, definition: Definition, generation: Generation, batch_records: int | None = None) -> PlanResult:
        """Logs what is new in the source as txids."""
        return microbatch.plan(self, definition, generation, batch_records)

    def drain(self, name: str, request: DrainRequest, progress: Progress | None = None) -> Drained:
        """Plans and drains everything that is new."""
        definition = self.definition(name)
        generation = self.generation(definition, create=True)
        return microbatch.drain(self, definition, generation, request, progress or Progress())

    def continuous(
        self, name: str, request: ContinuousRequest, progress: Progress, stop: threading.Event | None = None
    ) -> Drained:
        """Streams until it is asked to stop, through the same ledger and the same commit."""
        return stream.continuous(self, name, request, progress, stop or threading.Event())

    def real_time(
        self, name: str, request: RealTimeRequest, progress: Progress, stop: threading.Event | None = None
    ) -> Drained:
        """Serves from topic to topic until it is asked to stop, at-least-once, under the pipeline's lease."""
        return stream.real_time(self, name, request, progress, stop or threading.Event())

    def produced(self, definition: Definition) -> int | None:
        """Up to which txid rows are in the pipeline's topic; None where it has none."""
        return topic.produced(self, definition)

    def stop(self, name: str, reason: str) -> bool:
        """Asks whoever runs the pipeline, or stands by, to end at the next frontier; whether somebody runs it."""
        return control.stop(self, name, reason)

    def wait_until_free(self, name: str, seconds: float) -> None:
        """Returns when nobody runs the pipeline any more; raises LeaseHeld after `seconds`."""
        control.wait_until_free(self, name, seconds)

    def release(self, name: str, txid: int, reason: str) -> None:
        self.ledger.batches.release(self.generation(self.definition(name)).id, txid, reason)

    def discard(self, name: str, txid: int, reason: str) -> None:
        self.ledger.batches.discard(self.generation(self.definition(name)).id, txid, reason)

    def reinject(self, name: str, file: Path, reason: str, count_late: bool) -> Reinjected:
        """Plans mended records as a new txid."""
        definition = self.definition(name)
        generation = self.generation(definition)
        return reinject(self.ledger, definition, generation.id, self.places(definition), file, reason, count_late)

    def read(
        self, name: str, *, as_of: int | None = None, closed_only: bool = False, as_recorded: bool = False
    ) -> DataFrame:
        """The result as a Spark DataFrame."""
        definition = self.definition(name)
        store = self._agreed(definition)
        columns = definition.columns(self.spark())
        return read_result(
            self.spark(), definition, columns, store, as_of=as_of, closed_only=closed_only, as_recorded=as_recorded
        )

    def read_aside(self, name: str, kind: str, txid: int | None = None) -> DataFrame:
        """Dead letters (`dead`) or late records (`late`)."""
        store = self._agreed(self.definition(name))
        return read_aside(self.spark(), store, kind, txid)

    def fold(self, name: str) -> Folded:
        """Adds a base as of the frontier, and refreshes the plain table."""
        definition = self.definition(name)
        store = self._agreed(definition)
        return fold(self.spark(), definition, definition.columns(self.spark()), store, self.published(definition))

    def clean(self, name: str, retain_seconds: float | None = None, grace_seconds: float | None = None) -> Cleaned:
        """Takes away what no reader needs any more."""
        definition = self.definition(name)
        generation = self.generation(definition)
        retain = definition.pipeline.sink.retain_seconds if retain_seconds is None else retain_seconds
        extra = {} if grace_seconds is None else {"grace_seconds": grace_seconds}
        produces = isinstance(definition.pipeline.sink, KafkaSink)
        return clean(self.ledger, generation.id, self.store(definition, generation), retain, produces=produces, **extra)

    def build(self, name: str, request: DrainRequest, progress: Progress | None = None) -> Generation:
        """A new generation from the whole source beside the current one, which readers go on to see."""
        return generations.build(self, name, request, progress or Progress())

    def built(self, name: str) -> Generation | None:
        """The generation that is being built, if there is one."""
        return generations.built(self, name)

    def promote(self, name: str, *, unproven: bool = False) -> Generation:
        """Makes the generation that was built the one that readers see, if a reconciliation has found it equal."""
        return generations.promote(self, name, unproven=unproven)

    def drop(self, name: str, number: int) -> Generation:
        """Deletes what a generation that readers do not see any more has left behind."""
        return generations.drop(self, name, number)

    def rebuild(self, name: str) -> int:
        """Brings a ledger that is lost or older than the sink up to what the sink has."""
        return generations.rebuild(self, name)

    def _agreed(self, definition: Definition) -> DeltaStore:
        """The table of the current generation, once ledger and sink are seen to agree."""
        generation = self.generation(definition)
        self.require_agreement(definition, generation)
        return self.store(definition, generation)
