"""Recomputing: the result as of a frontier, from the source's own ranges, by the plain query over all rows.

Never from the stream's tables: two roads that meet are the proof.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinstream.batch.rows import LATE, late_limits, prepared_rows
from twinstream.batch.scope import Scope
from twinstream.batch.table import is_table, read_table, write_table
from twinstream.errors import Refused, SourceChanged
from twinstream.failpoints import durable
from twinstream.ledger import Generation, Ledger, Run
from twinstream.ledger.runs import Wanted
from twinstream.operators.base import EVENT_TIME, RECORD_ID
from twinstream.paths import literal
from twinstream.pipeline import Definition
from twinstream.reconcile.prints import prints_of, save_prints
from twinstream.runtime.classify import classified
from twinstream.runtime.heartbeat import run_heartbeat
from twinstream.runtime.holder import is_dead, new_holder
from twinstream.runtime.progress import Progress
from twinstream.runtime.tallies import TALLY, of_records
from twinstream.sources.base import Places, Slice
from twinstream.transaction import Batch, Tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KIND = "recompute"
CHUNK_BYTES = 4 * 1024**3
"""A larger source is prepared in chunks of so many bytes; a run that was killed goes on after the last whole one."""
RUN_SECONDS = 120.0
KEPT_COLUMNS = (EVENT_TIME, RECORD_ID, "_txid", "_hash", "_first", LATE)


@dataclass(frozen=True)
class Recompute:
    """What a recomputation needs to know."""

    spark: SparkSession
    ledger: Ledger
    definition: Definition
    generation: Generation
    places: Places
    home: Path
    progress: Progress

    def run(
        self,
        frontier: int | None,
        scope: Scope,
        *,
        accept_changes: bool = False,
        context: Mapping[str, str] | None = None,
    ) -> Run:
        """The batch result at `frontier` (default: the newest), made anew; safe to repeat and to run side by side.

        Where the source has changed it is refused, unless `accept_changes` asks for what the source says now.
        """
        at = check_frontier(self.generation, frontier)
        batches = self.ledger.batches.get(self.generation.id, 1, at)
        changed = self._changes(batches)
        if changed and not accept_changes:
            raise cannot_prove(changed)
        folder = f"batch/{self.definition.name}/{self.generation.name}/{at}-{secrets.token_hex(4)}"
        wanted = Wanted(self.generation.id, KIND, at, self.definition.hash, scope.to_dict(), folder)
        run = self.ledger.runs.start(wanted, new_holder(), RUN_SECONDS, is_dead=is_dead, context=context)
        try:
            with (
                run_heartbeat(self.ledger, run, RUN_SECONDS) as heartbeat,
                self.ledger.pins.hold(self.generation.id, at, KIND),
            ):
                result = self._work(run, remaining(self.definition, self.places, batches, changed), scope)
                heartbeat.check()
            self.ledger.runs.finish(run, result | {"changed": changed})
        except Exception as error:
            self.ledger.runs.fail(run, str(error).splitlines()[0][:500] if str(error) else type(error).__name__)
            raise
        return self.ledger.runs.get(run.id)

    def _work(self, run: Run, batches: Sequence[Batch], scope: Scope) -> dict[str, Any]:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        assert run.folder is not None
        folder = self.home / run.folder
        limits = late_limits(self.definition, batches, None)
        some_are_late = any(batch.accounting is not None and batch.accounting.late.count for batch in batches)
        if some_are_late or sum(batch.range.size for batch in batches) > CHUNK_BYTES:
            rows = self._staged(run, folder, batches, limits)
        else:
            rows = prepared_rows(self.spark, self.definition, self.places, batches, limits)
        if scope:
            rows = scope.of_records(rows)
        operator = self.definition.pipeline.operator
        seen = Observation()
        first = F.when(F.col("_first"), F.lit(1)).otherwise(F.lit(0)).cast("bigint")
        observed = rows.observe(
            seen, F.sum(first).alias("records"), F.sum(F.when(F.col(LATE), first)).alias("late_records")
        )
        self.progress.note(f"computing the result as of txid {run.frontier}")
        result: dict[str, Any] = {"folder": run.folder, "records": 0, "late_records": 0}
        write_table(operator.full_with_state(observed.where(~F.col(LATE))), folder / "table")
        result |= {name: int(value or 0) for name, value in observed_values(seen).items()}
        if some_are_late:
            self.progress.note("computing what it would be with the late records")
            write_table(operator.full_with_state(rows), folder / "with_late")
            result["with_late"] = True
        made = prints_of(read_rows(self.spark, folder / "table"), self.definition, self.definition.columns(self.spark))
        save_prints(folder, made)
        result |= {"rows": made.digests.rows, "digest": made.digests.hexdigest}
        # From here on the chunks are not whole any more: a run that is taken over has to make them again.
        self.ledger.runs.note(run, {})
        with durable("batch.tidy"):
            shutil.rmtree(folder / "rows", ignore_errors=True)
        return result

    def _staged(self, run: Run, folder: Path, batches: Sequence[Batch], limits: dict[int, int | None]) -> DataFrame:
        """The prepared rows as files, chunk by chunk; chunks that are there from an earlier try are not made again."""
        done = list((run.result or {}).get("chunks", []))
        whole = self.definition.pipeline.deduplicate is not None
        chunks = [list(batches)] if whole else chunked(batches)
        for number, chunk in enumerate(chunks):
            name = f"{chunk[0].txid}-{chunk[-1].txid}"
            if name not in done:
                self.progress.note(f"reading txids {chunk[0].txid} to {chunk[-1].txid} ({number + 1} of {len(chunks)})")
                rows = prepared_rows(self.spark, self.definition, self.places, chunk, limits)
                names = [name for name in rows.columns if not name.startswith("_")]
                with durable("batch.rows"):
                    kept = rows.select(*(f"`{name}`" for name in names), *KEPT_COLUMNS)
                    kept.write.mode("overwrite").parquet(str(folder / "rows" / name))
                done.append(name)
                self.ledger.runs.note(run, {"chunks": done})
        return self.spark.read.parquet(*(literal(folder / "rows" / name) for name in done))

    def _changes(self, batches: Sequence[Batch]) -> dict[str, str]:
        """Txids whose range does not hold any more what was logged, with what happened."""
        kept = [batch for batch in batches if batch.discard_reason is None]
        changes = self.definition.pipeline.source.changes(self.places, [batch.range for batch in kept])
        found = {str(kept[place].txid): error.what for place, error in changes.items()}
        for chunk in chunked([batch for batch in kept if not batch.range.exact and str(batch.txid) not in found]):
            found |= self._thinned(chunk)
        return found

    def _thinned(self, batches: Sequence[Batch]) -> dict[str, str]:
        """Txids whose range is there but gives other records, as where a topic was compacted: only reading tells."""
        slices = [Slice(batch.txid, batch.range, batch.batch_time) for batch in batches]
        rows = classified(
            self.definition.pipeline.source.read(self.spark, self.places, slices), self.definition.pipeline
        )
        tallied = rows.groupBy("_txid").agg(*of_records()).collect()
        read = {row["_txid"]: Tally.of_halves(*(row[name] for name in TALLY)) for row in tallied}
        return {
            str(batch.txid): f"Txid {batch.txid} read {batch.input.count} records from the source, which now gives "
            f"{read.get(batch.txid, Tally()).count}, not the same ones."
            for batch in batches
            if batch.input is not None and batch.input != read.get(batch.txid, Tally())
        }


def remaining(
    definition: Definition, places: Places, batches: Sequence[Batch], changed: Mapping[str, str]
) -> list[Batch]:
    """The batches with what is left of changed ranges."""
    spoilt = [batch for batch in batches if str(batch.txid) in changed]
    left = definition.pipeline.source.remaining(places, [batch.range for batch in spoilt])
    ranges = {batch.txid: found for batch, found in zip(spoilt, left, strict=True)}
    return [replace(batch, range=ranges.get(batch.txid, batch.range)) for batch in batches]


def check_frontier(generation: Generation, frontier: int | None) -> int:
    """The frontier to compute; refuses one that is not committed."""
    at = generation.frontier if frontier is None else frontier
    if at > generation.frontier:
        raise Refused(
            f"Txid {at} is not committed; the frontier is {generation.frontier}.",
            next_step=f"Choose a frontier up to {generation.frontier}, or drain first.",
        )
    if at < 1:
        raise Refused(
            f"{generation.pipeline} has no committed txid to compute from.",
            next_step=f"Run `twinstream drain {generation.pipeline}` first.",
        )
    return at


def cannot_prove(changed: Mapping[str, str]) -> SourceChanged:
    """The source does not hold any more what some txids read."""
    txids = sorted(map(int, changed))
    shown = ", ".join(map(str, txids[:20])) + (" …" if len(txids) > 20 else "")
    return SourceChanged(
        f"{len(txids)} txids can no longer be proven from the source ({shown}): {changed[str(txids[0])]}",
        untouched="The streamed result was left as it is.",
        next_step="Bring the files back as they were; `twinstream reconcile` shows what the source says now.",
    )


def chunked(batches: Sequence[Batch]) -> list[list[Batch]]:
    """Consecutive batches in chunks of about CHUNK_BYTES."""
    chunks: list[list[Batch]] = []
    size = 0
    for batch in batches:
        if not chunks or size + batch.range.size > CHUNK_BYTES:
            chunks.append([])
            size = 0
        chunks[-1].append(batch)
        size += batch.range.size
    return chunks


def observed_values(observation: Any) -> dict[str, int]:
    """What went by; nothing where Spark found that there are no rows at all."""
    try:
        return dict(observation.get)
    except Exception:
        return {}


def read_rows(spark: SparkSession, table: Path) -> DataFrame:
    """A batch table's rows as users see them."""
    rows = read_table(spark, table)
    return rows.drop(*(name for name in rows.columns if name.startswith("_")))


def tables_of(home: Path, run: Run) -> tuple[Path, Path | None]:
    """The batch table of a run, and the one with late records counted; refuses a run whose table is gone."""
    assert run.folder is not None
    folder = home / run.folder
    late = folder / "with_late"
    if not is_table(folder / "table"):
        raise Refused(
            f"The batch table {folder / 'table'} is gone or not whole.",
            next_step="Run `twinstream recompute` again.",
        )
    return folder / "table", late if (run.result or {}).get("with_late") else None
