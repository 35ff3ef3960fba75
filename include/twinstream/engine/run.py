"""One run under a pipeline's lease, in whatever mode: the runner with all that it needs, and folding as it goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from twinstream.engine.opened import Opened
from twinstream.engine.topic import producing
from twinstream.errors import LedgerSinkMismatch
from twinstream.ledger import Generation
from twinstream.pipeline import Definition
from twinstream.runtime.drain import Drained, Runner, RunnerOptions
from twinstream.runtime.fold import fold, wants_fold
from twinstream.runtime.progress import Progress
from twinstream.runtime.rate import RateController
from twinstream.runtime.read import View, view_of
from twinstream.sinks.delta import DeltaStore

if TYPE_CHECKING:
    from twinstream.runtime.processor import Processor


def run(
    opened: Opened,
    definition: Definition,
    generation: Generation,
    progress: Progress,
    work: Callable[[Runner], Drained],
    *,
    wait_seconds: float,
    context: Mapping[str, str],
    max_batches: int | None = None,
    group: int | None = None,
) -> Drained:
    """Gives `work` a runner; notes the rate that was seen, and leaves the result folded where it was folded at all."""
    store = opened.store(definition, generation)
    store.create()
    txids, records, _, _ = opened.ledger.batches.backlog(generation.id)
    progress.backlog(txids, records)
    settings = opened.settings
    rate = RateController(settings.group_seconds, generation.bytes_per_second, group)
    options = RunnerOptions(
        lease_seconds=settings.lease_seconds,
        wait_seconds=wait_seconds,
        groups_in_flight=settings.groups_in_flight,
        max_batches=max_batches,
        context=context,
    )

    def open_processor() -> Processor:
        from twinstream.runtime.process import SparkProcessor

        columns = opened.columns(definition)
        newest = opened.ledger.batches.get(generation.id, generation.frontier, generation.frontier)
        repeated = any(batch.accounting is not None and batch.accounting.duplicate.count for batch in newest)
        return SparkProcessor(opened.spark(), definition, columns, opened.places(definition), store.folder, repeated)

    folding = _Folding(opened, definition, store, progress)
    topic = producing(opened, definition, generation)
    runner = Runner(
        definition, opened.ledger, generation.id, store, open_processor, rate, options, progress, folding.after_commit,
        topic.produce if topic else lambda _lease: None,
    )  # fmt: skip
    try:
        drained = work(runner)
        folding.finish()
    finally:
        if rate.bytes_per_second is not None:
            opened.ledger.generations.note_rate(generation.id, rate.bytes_per_second)
    if folding.damage is not None:
        raise folding.damage
    return drained


class _Folding:
    """Folds between commits. Damage that it meets does not stop them, and is told at the end."""

    def __init__(self, opened: Opened, definition: Definition, store: DeltaStore, progress: Progress) -> None:
        self._opened = opened
        self._definition = definition
        self._store = store
        self._progress = progress
        self._folds = 0
        self.damage: LedgerSinkMismatch | None = None

    def after_commit(self) -> None:
        self._fold_if(wants_fold)

    def finish(self) -> None:
        """One more is cheap beside others, and leaves the whole result folded."""
        if self._folds and self.damage is None:
            self._fold_if(lambda view: bool(view.partial_files))

    def _fold_if(self, wanted: Callable[[View], bool]) -> None:
        try:
            if wanted(view_of(self._store)):
                self._progress.note("folding")
                spark = self._opened.spark()
                columns = self._definition.columns(spark)
                fold(spark, self._definition, columns, self._store, self._opened.published(self._definition))
                self._folds += 1
        except LedgerSinkMismatch as error:
            self.damage = error
