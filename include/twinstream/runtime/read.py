"""Reading a result: merge(base at B, partials after B), base and partials named by one snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from twinstream.errors import LedgerSinkMismatch, Refused
from twinstream.paths import literal
from twinstream.pipeline import Definition
from twinstream.runtime.process import stored_columns
from twinstream.sinks.base import Base, mismatch
from twinstream.sinks.delta import DeltaStore
from twinstream.sinks.snapshot import LiveFile, Snapshot, read_bases, read_manifests
from twinstream.small_table import small_table
from twinstream.transaction import Manifest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


REPAIR = "repair"
"""Where a base comes from that was recomputed from the source."""
UNDO = "undo"
"""Where a base comes from that brings back what was served before a repair."""


@dataclass(frozen=True)
class View:
    """What a read at one frontier is made of."""

    frontier: int
    watermark: int | None
    base: Base | None
    base_files: tuple[LiveFile, ...]
    partial_files: tuple[LiveFile, ...]
    late_before: Mapping[int, int]
    """Txids after the base that have late rows, with the moment that decides which."""


def view_of(
    store: DeltaStore,
    as_of: int | None = None,
    *,
    as_recorded: bool = False,
    damaged: bool = False,
    without_bases: bool = False,
) -> View:
    """Chooses base and partials for a read as of a txid (default: the newest committed one).

    With `as_recorded` no repair shows. With `damaged` it takes what is there, whatever the manifests say, and with
    `without_bases` all partials that are still there: only for reconciliation, which is to find out what is wrong.
    """
    snapshot = store.snapshot()
    newest = snapshot.state.txid
    frontier = newest if as_of is None else as_of
    if frontier < 0 or frontier > newest:
        raise Refused(
            f"Txid {frontier} is not committed; the newest is {newest}.", next_step="Read as of a lower txid."
        )
    if frontier < snapshot.kept_from:
        raise Refused(
            f"The result as of txid {frontier} was cleaned away; results are kept from txid {snapshot.kept_from} on.",
            next_step="Read as of a later txid, or keep more with DeltaSink(retain=…).",
        )
    bases = {base.number: base for base in read_bases(store.folder, snapshot)}
    if without_bases:
        bases = {}
    if as_recorded:
        bases = _before_repairs(bases)
    live = {file.base for file in snapshot.files.get("base", ())}
    usable = [b for b in bases.values() if b.frontier <= frontier and _is_live(b, bases, live)]
    base = max(usable, key=lambda found: found.number) if usable else None
    start = base.frontier if base else 0
    manifests = read_manifests(store.folder, snapshot, start + 1, frontier)
    if not damaged:
        _require_all(store, snapshot, start, frontier, manifests, base, bases)
    at_frontier = read_manifests(store.folder, snapshot, frontier, frontier) if frontier else []
    return View(
        frontier=frontier,
        watermark=at_frontier[0].watermark if at_frontier else None,
        base=base,
        base_files=_there(store, _base_files(snapshot, base), damaged),
        partial_files=_there(store, _partial_files(snapshot, start, frontier), damaged),
        late_before={m.txid: m.late_before for m in manifests if m.late_before is not None},
    )


def view_after(store: DeltaStore, start: int, as_of: int | None = None) -> View:
    """The partials after `start` alone, to be merged with a batch result as of `start`."""
    snapshot = store.snapshot()
    newest = snapshot.state.txid
    frontier = newest if as_of is None else as_of
    if not start <= frontier <= newest:
        raise Refused(
            f"Txid {frontier} is not committed, or before the batch result at {start}; the newest is {newest}.",
            next_step=f"Read as of a txid from {start} to {newest}.",
        )
    if start < snapshot.kept_from:
        raise Refused(
            f"The batch result is at txid {start}, but the partials up to txid {snapshot.kept_from} were cleaned away.",
            next_step="Run `twinstream recompute` to get a newer batch result.",
        )
    manifests = read_manifests(store.folder, snapshot, start + 1, frontier)
    _require_all(store, snapshot, start, frontier, manifests, None, {})
    before = Base(0, start, (), None, "batch", ())
    return View(
        frontier=frontier,
        watermark=manifests[-1].watermark if manifests else None,
        base=before,
        base_files=(),
        partial_files=_partial_files(snapshot, start, frontier),
        late_before={m.txid: m.late_before for m in manifests if m.late_before is not None},
    )


def state_rows(
    spark: SparkSession, definition: Definition, columns: Mapping[str, str], store: DeltaStore, view: View
) -> DataFrame:
    """The merged state rows of a view, late rows left out."""
    frames = unmerged_states(spark, definition, columns, store, view)
    together = reduce(lambda one, other: one.unionByName(other), frames)
    return definition.pipeline.operator.merge(together) if view.partial_files else together


def unmerged_states(
    spark: SparkSession, definition: Definition, columns: Mapping[str, str], store: DeltaStore, view: View
) -> list[DataFrame]:
    """The state rows of the partials, late rows left out, and of the base before them: a key may have several."""
    state = definition.pipeline.operator.state_columns(columns)
    frames = []
    if view.partial_files:
        frames.append(partial_rows(spark, definition, columns, store, view).select(*state))
    if view.base_files:
        frames.append(spark.read.schema(_ddl(state)).parquet(*_paths(store, view.base_files)))
    return frames or [spark.createDataFrame([], _ddl(state))]


def partial_rows(
    spark: SparkSession,
    definition: Definition,
    columns: Mapping[str, str],
    store: DeltaStore,
    view: View,
    *,
    placed: bool = False,
) -> DataFrame:
    """The partials of a view as they are stored, with their `_txid`, late rows left out.

    With `placed` each row says where it is stored, by `_file` and `_row`.
    """
    from pyspark.sql import functions as F

    schema = stored_columns(definition, columns) | ({"_file": "string", "_row": "bigint"} if placed else {})
    if not view.partial_files:
        return spark.createDataFrame([], _ddl(schema))
    rows = spark.read.schema(_ddl(stored_columns(definition, columns))).parquet(*_paths(store, view.partial_files))
    if placed:
        rows = rows.select("*", F.col("_metadata.file_path").alias("_file"), F.col("_metadata.row_index").alias("_row"))
    start = view.base.frontier if view.base else 0
    rows = rows.where((F.col("_txid") > start) & (F.col("_txid") <= view.frontier))
    if not view.late_before:
        return rows
    limits = [{"_txid": txid, "_threshold": limit} for txid, limit in view.late_before.items()]
    table = small_table(spark, "_txid:bigint,_threshold:bigint", limits)
    late = definition.pipeline.operator.late(F.timestamp_micros("_threshold"))
    assert late is not None
    return rows.join(F.broadcast(table), "_txid", "left").where(~F.coalesce(late, F.lit(False))).select(*schema)


def raw_partials(spark: SparkSession, schema: Mapping[str, str], store: DeltaStore, snapshot: Snapshot) -> DataFrame:
    """Every stored partial row that a snapshot names, late ones too."""
    files = _there(store, snapshot.files.get("partial", ()), damaged=True)
    return spark.read.schema(_ddl(schema)).parquet(*_paths(store, files)) if files else _empty(spark, schema)


def read_result(
    spark: SparkSession,
    definition: Definition,
    columns: Mapping[str, str],
    store: DeltaStore,
    *,
    as_of: int | None = None,
    closed_only: bool = False,
    as_recorded: bool = False,
) -> DataFrame:
    """The result as users see it."""
    from pyspark.sql import functions as F

    view = view_of(store, as_of, as_recorded=as_recorded)
    rows = definition.pipeline.operator.present(state_rows(spark, definition, columns, store, view))
    if not closed_only:
        return rows
    if definition.pipeline.operator.window is None:
        raise Refused(
            f"{definition.name} has no window, so nothing in it is ever closed.",
            next_step="Read it without --closed-only.",
        )
    if view.watermark is None:
        return rows.where(F.lit(False))
    return rows.where(F.col("window_end") <= F.timestamp_micros(F.lit(view.watermark)))


def read_aside(spark: SparkSession, store: DeltaStore, kind: str, txid: int | None = None) -> DataFrame:
    """Dead letters (`dead`) or late records (`late`), exactly those of committed txids."""
    from pyspark.sql import functions as F

    schema = "_txid bigint, _reason string, _file string, _line bigint, _occurrences bigint, _raw string"
    files = store.snapshot().files.get(kind, ())
    rows = spark.read.schema(schema).parquet(*_paths(store, files)) if files else spark.createDataFrame([], schema)
    rows = rows if txid is None else rows.where(F.col("_txid") == txid)
    return rows.toDF("txid", "reason", "file", "line_hash", "occurrences", "record")


def _partial_files(snapshot: Snapshot, start: int, frontier: int) -> tuple[LiveFile, ...]:
    return tuple(
        file
        for file in snapshot.files.get("partial", ())
        if file.first_txid is None or file.last_txid is None
        or (file.last_txid > start and file.first_txid <= frontier)
    )  # fmt: skip


def _there(store: DeltaStore, files: tuple[LiveFile, ...], damaged: bool) -> tuple[LiveFile, ...]:
    """In a damaged table a file that is named may be gone."""
    return tuple(file for file in files if (store.folder / file.path).exists()) if damaged else files


def _before_repairs(bases: Mapping[int, Base]) -> dict[int, Base]:
    """Bases that no repair is in: those before the first one."""
    first = min((base.number for base in bases.values() if base.origin == REPAIR), default=None)
    return {number: base for number, base in bases.items() if first is None or number < first}


def _base_files(snapshot: Snapshot, base: Base | None) -> tuple[LiveFile, ...]:
    if base is None:
        return ()
    return tuple(file for file in snapshot.files.get("base", ()) if file.base in base.parts)


def _is_live(base: Base, bases: Mapping[int, Base], live: set[int | None]) -> bool:
    """A base can be read as long as every part that wrote files still has them."""
    return all(not bases[part].files or part in live for part in base.parts if part in bases)


def _require_all(
    store: DeltaStore,
    snapshot: Snapshot,
    start: int,
    frontier: int,
    manifests: Sequence[Manifest],
    base: Base | None,
    bases: Mapping[int, Base],
) -> None:
    """Nothing that the manifests name may be missing: half a result is never shown as a whole one."""
    if [manifest.txid for manifest in manifests] != list(range(start + 1, frontier + 1)):
        raise mismatch(f"The sink has lost manifests between txids {start + 1} and {frontier}")
    named = {path for manifest in manifests for path in manifest.files}
    if base is not None:
        named |= {path for part in base.parts if part in bases for path in bases[part].files}
    there = {file.path: file.size for files in snapshot.files.values() for file in files}
    for path in sorted(named):
        on_disk = store.folder / path
        if path not in there or not on_disk.exists() or on_disk.stat().st_size != there[path]:
            raise LedgerSinkMismatch(
                f"The file {on_disk} belongs to the result but was removed or changed by something else.",
                untouched="Nothing was read from the damaged result.",
                next_step="See 'When ledger and sink disagree' in docs/protocol.md for how to go on.",
            )


def _paths(store: DeltaStore, files: Sequence[LiveFile]) -> list[str]:
    return [literal(store.folder / file.path) for file in files]


def _empty(spark: SparkSession, schema: Mapping[str, str]) -> DataFrame:
    return spark.createDataFrame([], _ddl(schema))


def _ddl(columns: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
