"""Repairing: the batch result at F becomes the newest base, in order with live commits; undo brings the old one back.

Nothing is overwritten: partials and earlier bases stay until the retention has passed, so a repair can be taken back
and what was served before can still be read (`--as-recorded`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from twinstream.batch.recompute import tables_of
from twinstream.batch.table import read_table
from twinstream.errors import Refused
from twinstream.failpoints import durable
from twinstream.ledger import Run
from twinstream.pipeline import Definition
from twinstream.runtime.read import REPAIR, UNDO
from twinstream.runtime.staging import base_files
from twinstream.sinks.base import Base
from twinstream.sinks.delta import DeltaStore
from twinstream.transaction import StagedFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Mender:
    """Adds bases to one generation's table."""

    spark: SparkSession
    definition: Definition
    columns: Mapping[str, str]
    store: DeltaStore
    home: Path

    def repair(self, run: Run) -> Base:
        """Adds the batch result of a run as the newest base."""
        kept_from = self.store.snapshot().kept_from
        if run.frontier < kept_from:
            raise Refused(
                f"The batch result is at txid {run.frontier}, but partials up to txid {kept_from} were cleaned away, "
                "so what was streamed after it could not be added to it.",
                next_step="Recompute and reconcile at a newer frontier, then repair.",
            )
        table, _ = tables_of(self.home, run)
        operator = self.definition.pipeline.operator
        names = operator.state_columns(self.columns)
        rows = operator.state_of(read_table(self.spark, table)).select(*(f"`{name}`" for name in names))
        staging = self.store.new_staging()
        with durable("stage.base"):
            rows.write.parquet(str(self.store.folder / staging))
        files = base_files(self.store.folder, staging, run.frontier)
        watermark = self.store.manifests(run.frontier, run.frontier)[0].watermark
        return self._add(run.frontier, None, watermark, REPAIR, files)

    def last_repair(self) -> int:
        """The base of the last repair that was not undone."""
        last = max((base.number for base in self.store.bases() if base.origin == REPAIR), default=0)
        if not last or self._undone(last):
            raise Refused(f"There is no repair of {self.definition.name} to undo.", next_step="Nothing was changed.")
        return last

    def undo(self, repair: int) -> Base:
        """Goes back to the base that was the newest before a repair; once that is done, it stays done."""
        done = self._undone(repair)
        if done is not None:
            return done
        bases = {base.number: base for base in self.store.bases()}
        before = [base for base in bases.values() if base.number < repair and base.origin != REPAIR]
        old = max(before, key=lambda base: base.number, default=Base(0, 0, (), None, UNDO, ()))
        snapshot = self.store.snapshot()
        live = {file.base for file in snapshot.files.get("base", ())}
        if old.frontier < snapshot.kept_from or any(bases[part].files and part not in live for part in old.parts):
            raise Refused(
                "What was served before the repair was cleaned away, so it cannot be brought back.",
                next_step="Keep more with DeltaSink(retain=…).",
            )
        return self._add(old.frontier, old.parts, old.watermark, UNDO, [])

    def _undone(self, repair: int) -> Base | None:
        return next((base for base in self.store.bases() if base.origin == UNDO and base.number > repair), None)

    def _add(
        self,
        frontier: int,
        parts: tuple[int, ...] | None,
        watermark: int | None,
        origin: str,
        files: Sequence[StagedFile],
    ) -> Base:
        """Takes the next free number; a fold may take it first, then the one after."""
        while True:
            number = self.store.state().base + 1
            base = Base(number, frontier, parts or (), watermark, origin, tuple(file.path for file in files))
            base = base if parts is not None else Base(number, frontier, (number,), watermark, origin, base.files)
            if self.store.add_base(base, files):
                return base
