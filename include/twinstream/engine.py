"""The engine: everything that can be done to a pipeline, for the command line, spark_jobs and Airflow alike."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from twinstream.catalog import Catalog, load_catalog
from twinstream.errors import DefinitionChanged, LedgerSinkMismatch, Refused, TwinstreamError
from twinstream.failpoints import durable
from twinstream.ledger import Generation, Ledger, Planned
from twinstream.ledger.generations import BUILDING
from twinstream.ledger.rebuild import rebuild
from twinstream.pipeline import Definition
from twinstream.runtime.clean import Cleaned, clean
from twinstream.runtime.continuous import Continuous, ContinuousRequest
from twinstream.runtime.drain import Drained, Runner, RunnerOptions
from twinstream.runtime.fold import Folded, fold, wants_fold
from twinstream.runtime.holder import is_dead
from twinstream.runtime.plan import PlanResult, plan
from twinstream.runtime.progress import Progress
from twinstream.runtime.rate import RateController
from twinstream.runtime.read import View, read_aside, read_result, view_of
from twinstream.runtime.recover import compare
from twinstream.runtime.reinject import Reinjected, reinject
from twinstream.settings import Settings
from twinstream.sinks.base import mismatch
from twinstream.sinks.delta import DeltaStore
from twinstream.sources.base import Places
from twinstream.sources.kafka.source import RECORD_BYTES, KafkaSource
from twinstream.transaction import canonical_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from twinstream.runtime.processor import Processor

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


class Engine:
    """Opens what is needed when it is needed: the ledger at first use, Spark only when there is work for it."""

    def __init__(self, settings: Settings, spark: SparkSession | None = None) -> None:
        self.settings = settings
        self._spark = spark
        self._own_spark = spark is None

    @cached_property
    def catalog(self) -> Catalog:
        return load_catalog(self.settings.pipelines)

    @cached_property
    def ledger(self) -> Ledger:
        return Ledger.open(self.settings.ledger_url)

    def spark(self) -> SparkSession:
        if self._spark is None:
            from twinstream.spark import open_session

            self._spark = open_session(self.settings, "engine")
        return self._spark

    def close(self) -> None:
        """Stops what this engine started; a Spark that is gone already needs no stopping."""
        if self._spark is not None and self._own_spark:
            with suppress(Exception):
                self._spark.stop()
            self._spark = None
        if "ledger" in self.__dict__:
            self.ledger.close()

    def definition(self, name: str) -> Definition:
        return self.catalog.get(name)

    def places(self, definition: Definition) -> Places:
        return self.settings.places(definition.name)

    def published(self, definition: Definition) -> Path:
        """The plain table for other engines."""
        return self.places(definition).resolve(definition.pipeline.sink.path)

    def columns(self, definition: Definition) -> dict[str, str]:
        return definition.columns(self.spark() if definition.needs_spark() else None)

    def generation(self, definition: Definition, *, create: bool = False) -> Generation:
        """The current generation; refuses to go on under a definition that gives other results."""
        found = self.ledger.generations.current(definition.name)
        if found is None:
            if not create:
                raise Refused(
                    f"{definition.name} has not been run yet.", next_step=f"Run `twinstream drain {definition.name}`."
                )
            self._refuse_unknown_tables(definition)
            found = self.ledger.generations.open(definition.name, definition.hash, _kept(definition))
        if found.definition_hash != definition.hash:
            raise DefinitionChanged(
                f"The definition of {definition.name} has changed in a way that changes results "
                f"(generation {found.number} has {found.definition_hash[:8]}, now it is {definition.hash[:8]}).",
                next_step=f"Undo the change, or build a new generation with `twinstream replay {definition.name}`.",
            )
        return found

    def any_generation(self, definition: Definition) -> Generation:
        """The current generation, also if the definition has changed since."""
        found = self.ledger.generations.current(definition.name)
        return self.generation(definition) if found is None else found

    def store(self, definition: Definition, generation: Generation) -> DeltaStore:
        """The generation's table."""
        from twinstream.runtime.process import stored_columns

        folder = self._tables(definition) / generation.name
        store = DeltaStore(folder, generation.name, {})
        if not store.exists():
            store = DeltaStore(folder, generation.name, stored_columns(definition, self.columns(definition)))
        return store

    def plan(self, definition: Definition, generation: Generation, batch_records: int | None = None) -> PlanResult:
        """Logs what is new in the source as txids."""
        wanted = batch_records or definition.pipeline.batch_records
        return plan(self.ledger, definition, generation.id, self.places(definition), wanted, ENOUGH_BYTES)

    def drain(self, name: str, request: DrainRequest, progress: Progress | None = None) -> Drained:
        """Plans and drains everything that is new."""
        definition = self.definition(name)
        generation = self.generation(definition, create=True)
        return self._drain(definition, generation, request, progress or Progress())

    def _drain(
        self, definition: Definition, generation: Generation, request: DrainRequest, progress: Progress
    ) -> Drained:
        problems: list[TwinstreamError] = []

        def plan_more() -> bool:
            found = self.plan(definition, generation, request.batch_records)
            if found.problem is not None:
                problems[:] = [found.problem]
            for warning in found.warnings:
                progress.note(warning)
            if found.txids:
                progress.planned(len(found.txids), found.records)
                txids, records, _, _ = self.ledger.batches.backlog(generation.id)
                progress.backlog(txids, records)
            return bool(found.txids)

        self._require_agreement(definition, generation)
        plan_more()
        drained = Drained()
        if self.ledger.batches.backlog(generation.id)[0]:
            drained = self._run(definition, generation, request, progress, lambda runner: runner.run(plan_more))
        if problems:
            raise problems[0]
        return drained

    def _run(
        self,
        definition: Definition,
        generation: Generation,
        request: DrainRequest,
        progress: Progress,
        work: Callable[[Runner], Drained],
    ) -> Drained:
        store = self.store(definition, generation)
        store.create()
        txids, records, _, _ = self.ledger.batches.backlog(generation.id)
        progress.backlog(txids, records)
        rate = RateController(self.settings.group_seconds, generation.bytes_per_second, request.group)
        options = RunnerOptions(
            lease_seconds=self.settings.lease_seconds,
            wait_seconds=request.wait_seconds,
            groups_in_flight=self.settings.groups_in_flight,
            max_batches=request.max_batches,
            context=request.context,
        )

        def open_processor() -> Processor:
            from twinstream.runtime.process import SparkProcessor

            columns = self.columns(definition)
            return SparkProcessor(self.spark(), definition, columns, self.places(definition), store.folder)

        damage: list[LedgerSinkMismatch] = []
        folds = 0

        def fold_if(wanted: Callable[[View], bool]) -> None:
            nonlocal folds
            try:
                if wanted(view_of(store)):
                    progress.note("folding")
                    self._fold(definition, store)
                    folds += 1
            except LedgerSinkMismatch as error:
                damage[:] = [error]

        runner = Runner(
            definition, self.ledger, generation.id, store, open_processor, rate, options, progress,
            lambda: fold_if(wants_fold),
        )  # fmt: skip
        try:
            drained = work(runner)
            if folds and not damage:  # one more is cheap beside them, and leaves the whole result folded
                fold_if(lambda view: bool(view.partial_files))
        finally:
            if rate.bytes_per_second is not None:
                self.ledger.generations.note_rate(generation.id, rate.bytes_per_second)
        if damage:
            raise damage[0]
        return drained

    def continuous(
        self, name: str, request: ContinuousRequest, progress: Progress, stop: threading.Event | None = None
    ) -> Drained:
        """Streams until it is asked to stop, through the same ledger and the same commit."""
        definition = self.definition(name)
        source = definition.pipeline.source
        if not isinstance(source, KafkaSource):
            raise Refused(
                f"Continuous mode streams topics; {name} reads {source.kind}.",
                next_step=f"`twinstream drain {name}` takes what is new, and Airflow watches for it.",
            )
        if self.settings.master.startswith("sc://"):
            raise Refused(
                "Continuous mode needs a Spark of its own: a Connect server would run the query without the ledger.",
                next_step="Set TWINSTREAM_MASTER to local[*] or a cluster's master, or use spark-submit.",
            )
        generation = self.generation(definition, create=True)
        self._require_agreement(definition, generation)
        drain = DrainRequest(wait_seconds=request.wait_seconds, context=request.context)
        continuous = Continuous(
            self.spark, source, definition, self.ledger, generation, self.places(definition), progress, request,
            self._most_records(definition, generation), stop or threading.Event(),
        )  # fmt: skip
        return self._run(definition, generation, drain, progress, continuous.run)

    def _most_records(self, definition: Definition, generation: Generation) -> int:
        """As many as one group should take, by the rate seen so far: a burst waits in the topic, not in memory."""
        if generation.bytes_per_second is None:
            return definition.pipeline.batch_records
        return max(1_000, int(generation.bytes_per_second * self.settings.group_seconds / RECORD_BYTES))

    def release(self, name: str, txid: int, reason: str) -> None:
        self.ledger.batches.release(self.generation(self.definition(name)).id, txid, reason)

    def discard(self, name: str, txid: int, reason: str) -> None:
        self.ledger.batches.discard(self.generation(self.definition(name)).id, txid, reason)

    def reinject(self, name: str, file: Path, reason: str, count_late: bool) -> Reinjected:
        """Plans mended records as a new txid."""
        definition = self.definition(name)
        generation = self.generation(definition)
        return reinject(self.ledger, definition, generation.id, self.places(definition), file, reason, count_late)

    def build(self, name: str, request: DrainRequest, progress: Progress | None = None) -> Generation:
        """A new generation from the whole source beside the current one, which readers go on to see.

        Where there is none yet, the first one is drained.
        """
        definition = self.definition(name)
        if self.ledger.generations.current(name) is None:
            self.drain(name, request, progress)
            return self.generation(definition)
        generation = self.ledger.generations.build(name, definition.hash, _kept(definition))
        self._plan_reinjected(definition, generation)
        self._drain(definition, generation, request, progress or Progress())
        return self.ledger.generations.get(generation.id)

    def built(self, name: str) -> Generation | None:
        """The generation that is being built, if there is one."""
        return next((one for one in self.ledger.generations.of(name) if one.state == BUILDING), None)

    def promote(self, name: str, *, unproven: bool = False) -> Generation:
        """Makes the generation that was built the one that readers see; a no-op where that is done already.

        Refused, unless `unproven` is asked for, as long as no reconciliation at its frontier has found it equal.
        """
        definition = self.definition(name)
        built = self.built(name)
        if built is None:
            return self.generation(definition)
        if not unproven and not self._is_proven(built):
            raise Refused(
                f"Generation {built.number} of {name} is not proven: no reconciliation as of txid {built.frontier} "
                "has found it equal to the batch.",
                untouched="Readers see the generation that they saw before.",
                next_step=f"Run `twinstream replay {name}`, which reconciles before it promotes.",
            )
        self.ledger.generations.promote(built)
        return self.generation(definition)

    def _is_proven(self, built: Generation) -> bool:
        return any(
            run.frontier == built.frontier and not run.scope and (run.result or {}).get("verdict") != "different"
            for run in self.ledger.runs.done(built.id, "reconcile")
        )

    def drop(self, name: str, number: int) -> Generation:
        """Deletes what a generation that readers do not see any more has left behind."""
        definition = self.definition(name)
        generation = self.ledger.generations.drop(name, number)
        for folder in (
            self._tables(definition) / generation.name,
            self.settings.home / "batch" / name / generation.name,
        ):
            with durable("drop.delete"):
                shutil.rmtree(folder, ignore_errors=True)
        return generation

    def _plan_reinjected(self, definition: Definition, generation: Generation) -> None:
        """What people brought back in the current generation belongs to the new one too."""
        current = self.ledger.generations.current(definition.name)
        assert current is not None
        for batch in self.ledger.batches.reinjected(current.id):
            if all(self.ledger.batches.claim_of(generation.id, claim) is None for claim in batch.range.claims):
                last = self.ledger.generations.get(generation.id).last_txid
                again = Planned(batch.range, exempt=batch.exempt)
                self.ledger.batches.plan(generation.id, last, [again], definition.hash, why=("reinjected", "replay"))

    def rebuild(self, name: str) -> int:
        """Brings a ledger that is lost or older than the sink up to what the sink has."""
        definition = self.definition(name)
        folder = self._tables(definition)
        names = (
            sorted((p.name for p in folder.glob("g*-*")), key=lambda n: int(n[1:].split("-")[0]))
            if folder.is_dir()
            else []
        )
        if not names:
            raise Refused(f"There is no table of {name} below {folder}.", next_step="Nothing to rebuild from.")
        known = {generation.name: generation for generation in self.ledger.generations.of(name)}
        newest = names[-1]
        store = DeltaStore(folder / newest, newest, {})
        state = store.state()
        manifests = store.manifests(1, state.txid)
        if len(manifests) != state.txid:
            raise mismatch(f"The sink has only {len(manifests)} of {state.txid} manifests")
        if newest not in known:
            number, uid = newest[1:].split("-", 1)
            seen = manifests[-1].definition_hash if manifests else definition.hash
            generation = self.ledger.generations.adopt(name, int(number), uid, seen, _kept(definition))
        else:
            generation = known[newest]
        return rebuild(self.ledger.database, generation.id, manifests, state.epoch, is_dead)

    def read(
        self, name: str, *, as_of: int | None = None, closed_only: bool = False, as_recorded: bool = False
    ) -> DataFrame:
        """The result as a Spark DataFrame."""
        definition = self.definition(name)
        store = self._readable_store(definition)
        columns = definition.columns(self.spark())
        return read_result(
            self.spark(), definition, columns, store, as_of=as_of, closed_only=closed_only, as_recorded=as_recorded
        )

    def read_aside(self, name: str, kind: str, txid: int | None = None) -> DataFrame:
        """Dead letters (`dead`) or late records (`late`)."""
        definition = self.definition(name)
        return read_aside(self.spark(), self._readable_store(definition), kind, txid)

    def fold(self, name: str) -> Folded:
        definition = self.definition(name)
        generation = self.generation(definition)
        self._require_agreement(definition, generation)
        return self._fold(definition, self.store(definition, generation))

    def clean(self, name: str, retain_seconds: float | None = None, grace_seconds: float | None = None) -> Cleaned:
        definition = self.definition(name)
        generation = self.generation(definition)
        retain = definition.pipeline.sink.retain_seconds if retain_seconds is None else retain_seconds
        extra = {} if grace_seconds is None else {"grace_seconds": grace_seconds}
        return clean(self.ledger, generation.id, self.store(definition, generation), retain, **extra)

    def _fold(self, definition: Definition, store: DeltaStore) -> Folded:
        columns = definition.columns(self.spark())
        return fold(self.spark(), definition, columns, store, self.published(definition))

    def _readable(self, definition: Definition) -> Generation:
        return self.generation(definition)

    def _readable_store(self, definition: Definition) -> DeltaStore:
        generation = self._readable(definition)
        self._require_agreement(definition, generation)
        return self.store(definition, generation)

    def _require_agreement(self, definition: Definition, generation: Generation) -> None:
        """Before anything is read or written: a table that was rolled back or a ledger that is too old is no base."""
        store = DeltaStore(self._tables(definition) / generation.name, generation.name, {})
        if generation.frontier or store.exists():
            compare(self.ledger, store, generation.id)

    def _tables(self, definition: Definition) -> Path:
        return self.published(definition) / "_twinstream"

    def _refuse_unknown_tables(self, definition: Definition) -> None:
        """A table without a ledger that knows it is somebody's result: never start over beside it in silence."""
        known = {generation.name for generation in self.ledger.generations.of(definition.name)}
        folder = self._tables(definition)
        found = sorted(path.name for path in folder.glob("g*-*") if path.name not in known) if folder.is_dir() else []
        if found:
            raise mismatch(
                f"{folder} holds generation {found[-1]} of {definition.name}, which this ledger does not know "
                "(a new or wrong TWINSTREAM_LEDGER_URL?)"
            )


def _kept(definition: Definition) -> str:
    return canonical_json(definition.canonical)
