"""Scrubbing: the stored partials against the digests that the ledger logged when they were committed.

Finds rows that were altered, lost or added behind our back without looking at the source; only what was folded and
cleaned away cannot be seen any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from twinstream.engine import Engine
from twinstream.operators.base import col
from twinstream.runtime.process import stored_columns
from twinstream.runtime.read import REPAIR, UNDO, raw_partials
from twinstream.runtime.tallies import row_digest
from twinstream.sinks.base import Base
from twinstream.transaction import Tally


@dataclass(frozen=True)
class Damaged:
    """A txid whose stored rows are not those that were committed."""

    txid: int
    logged: Tally
    found: Tally


@dataclass(frozen=True)
class Scrubbed:
    """What a scrub found."""

    pipeline: str
    frontier: int
    first: int
    """Txids from here on still have their partials."""
    rows: int
    damaged: tuple[Damaged, ...]
    mended: tuple[int, ...] = ()
    """Txids that are damaged, but a repair has put a base over them: nobody reads them any more."""


def scrub(engine: Engine, name: str) -> Scrubbed:
    """Reads every stored partial once and compares it with the ledger."""
    from pyspark.sql import functions as F

    definition = engine.definition(name)
    generation = engine.generation(definition)
    store = engine.store(definition, generation)
    columns = definition.columns(engine.spark())
    snapshot = store.snapshot()
    state = definition.pipeline.operator.state_columns(columns)
    rows = raw_partials(engine.spark(), stored_columns(definition, columns), store, snapshot)
    digest = row_digest(list(state.items()))
    low = digest.bitwiseAND(F.lit(0xFFFFFFFF).cast("bigint"))
    found = (
        rows.where(col("_txid") > snapshot.kept_from)
        .groupBy("_txid")
        .agg(
            F.count(F.lit(1)).alias("rows"),
            F.sum(low).alias("low"),
            F.sum(F.shiftright(digest, 32)).alias("high"),
            F.bit_xor(digest).alias("xor"),
        )
        .collect()
    )
    tallies = {row["_txid"]: Tally.of_halves(row["rows"], row["low"], row["high"], row["xor"]) for row in found}
    logged = engine.ledger.batches.digests(generation.id, snapshot.kept_from + 1, snapshot.state.txid)
    damaged = [
        Damaged(txid, logged.get(txid, Tally()), tallies.get(txid, Tally()))
        for txid in sorted({*logged, *tallies})
        if logged.get(txid, Tally()) != tallies.get(txid, Tally())
    ]
    repaired = repaired_up_to(store.bases())
    return Scrubbed(
        name,
        snapshot.state.txid,
        snapshot.kept_from + 1,
        sum(t.count for t in tallies.values()),
        tuple(one for one in damaged if one.txid > repaired),
        tuple(one.txid for one in damaged if one.txid <= repaired),
    )


def repaired_up_to(bases: Iterable[Base]) -> int:
    """The txid up to which the result comes from a repair that was not undone."""
    found = 0
    for base in sorted(bases, key=lambda base: base.number):
        if base.origin == REPAIR:
            found = base.frontier
        elif base.origin == UNDO:
            found = 0
    return found
