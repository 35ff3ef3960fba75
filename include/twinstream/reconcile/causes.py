"""Why rows differ: the txids behind them, a source or a definition that changed, a batch that differs from itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from twinstream.batch.rows import LATE, late_limits, prepared_rows
from twinstream.operators.base import EVENT_TIME, KEPT, col
from twinstream.reconcile.compare import Found
from twinstream.reconcile.differences import differing_keys
from twinstream.reconcile.hashes import KEY_HASH, key_hash_in
from twinstream.reconcile.result import Comparison, Difference, TxidDifferences
from twinstream.reconcile.shape import common_shape
from twinstream.reconcile.sides import Sides
from twinstream.reconcile.txids import Behind, differing_txids
from twinstream.sources.base import Places
from twinstream.transaction import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_KEYS = 200_000
"""Causes are sought for so many differing rows; beyond that the result is simply another one."""


@dataclass(frozen=True)
class Explained:
    """A comparison whose differences are explained as far as that is possible."""

    comparison: Comparison
    txids: tuple[TxidDifferences, ...] = ()
    causes: tuple[str, ...] = field(default=())


def explain(
    found: Found,
    sides: Sides,
    batches: Sequence[Batch],
    places: Places,
    changed: Mapping[str, str],
    other_definition: bool,
) -> Explained:
    """Names the txids and the causes behind the differing rows."""
    if found.rows is None:
        return Explained(found.comparison)
    causes = [what for _, what in sorted(changed.items(), key=lambda item: int(item[0]))]
    if other_definition:
        causes.append("The definition is another one now than the one the stream was made by.")
        return Explained(_all_are(found.comparison, Difference.DEFINITION_CHANGED), causes=tuple(causes))
    rows = found.rows.groupBy(KEY_HASH, "kind").sum("n").limit(MOST_KEYS + 1).collect()
    if len(rows) > MOST_KEYS:
        causes.append(f"More than {MOST_KEYS} rows differ: their txids were not sought.")
        return Explained(found.comparison, causes=tuple(causes))
    keys = keys_of(found, sides.key)
    with _affected(sides, batches, places, keys) as affected:
        unsteady = _differs_from_itself(sides, affected, keys)
        behind = _txids_behind(sides, affected, keys)
    spoilt = {int(txid) for txid in changed}
    kinds = {row[0]: _cause(row[0], unsteady, behind, spoilt) for row in rows}
    counts: Counter[Difference] = Counter(dict.fromkeys(found.comparison.counts, 0))
    for key, kind, count in rows:
        counts[kinds[key] or Difference(kind)] += count
    comparison = replace(behind.name_samples(found), counts=dict(counts))
    samples = (
        replace(sample, kind=kinds.get(key) or sample.kind)
        for key, sample in zip(found.sample_keys, comparison.samples, strict=True)
    )
    comparison = replace(comparison, samples=tuple(samples))
    if unsteady:
        causes.append(f"{len(unsteady)} rows of the batch were other ones when it was run again: prepare is not pure.")
    in_base = [key for key in kinds if kinds[key] is None and key not in behind.of_key]
    if in_base:
        causes.append(_in_base(sides, len(in_base)))
    times = {batch.txid: batch.batch_time for batch in batches}
    txids = tuple(
        TxidDifferences(txid, times.get(txid, 0), {kind: n for kind, n in found.items() if n})
        for txid, found in sorted(behind.counts.items())
    )
    return Explained(comparison, txids, tuple(causes))


def keys_of(found: Found, key: Sequence[str]) -> DataFrame:
    """The keys of the differing rows as a table at hand, for it is looked at again and again."""
    from pyspark.sql import functions as F

    assert found.rows is not None
    row = F.coalesce("stream", "batch")
    places = {name: f"c{place}" for place, name in enumerate(found.shape.names)}
    keys = found.rows.select(*(row.getField(places[name]).alias(name) for name in key)).distinct()
    return keys.sparkSession.createDataFrame(keys.toArrow(), schema=keys.schema)


class _affected:
    """The prepared rows behind the differing keys, read from the source once and kept while they are looked at."""

    def __init__(self, sides: Sides, batches: Sequence[Batch], places: Places, keys: DataFrame) -> None:
        from pyspark.sql import functions as F

        limits = late_limits(sides.definition, batches, None)
        rows = prepared_rows(sides.spark, sides.definition, places, batches, limits).where(~F.col(LATE))
        window = sides.operator.window
        if window is not None:
            rows = rows.withColumn("window_start", F.window(col(EVENT_TIME), window.duration)["start"])
        rows = only_keys(rows, keys, sides.key)
        self._rows = (rows if window is None else rows.drop("window_start")).persist()

    def __enter__(self) -> DataFrame:
        return self._rows

    def __exit__(self, *_: object) -> None:
        self._rows.unpersist()


def only_keys(rows: DataFrame, keys: DataFrame, key: Sequence[str]) -> DataFrame:
    """The rows with one of the keys."""
    from pyspark.sql import functions as F

    wanted = keys.select(key_hash_in(keys.schema, key).alias("_wanted")).distinct()
    hashed = rows.withColumn("_wanted", key_hash_in(rows.schema, key))
    return hashed.join(F.broadcast(wanted), "_wanted", "left_semi").drop("_wanted")


def _differs_from_itself(sides: Sides, affected: DataFrame, keys: DataFrame) -> set[int]:
    """The keys for which the plain query, run once more, gives other rows than the first time."""
    again = sides.operator.full(affected)
    first = only_keys(sides.batch(), keys, sides.key)
    shape = common_shape(again.schema, first.schema, sides.key)
    return {row[0] for row in differing_keys(again, first, shape).collect()}


def _txids_behind(sides: Sides, affected: DataFrame, keys: DataFrame) -> Behind:
    from pyspark.sql import functions as F

    kept_from = sides.store.snapshot().kept_from
    names = ["_txid", *sides.operator.state_columns(sides.columns)]
    fresh = sides.operator.partial(affected.withColumn(KEPT, F.lit(True)), ["_txid"], []).select(*names)
    fresh, stored = (rows.where(F.col("_txid") > kept_from) for rows in (fresh, sides.partials()))
    return differing_txids(stored, fresh, sides.key, keys)


def _cause(key: int, unsteady: set[int], behind: Behind, spoilt: set[int]) -> Difference | None:
    if key in unsteady:
        return Difference.NON_DETERMINISTIC
    if spoilt.intersection(behind.of_key.get(key, ())):
        return Difference.SOURCE_CHANGED
    return None


def _in_base(sides: Sides, rows: int) -> str:
    base = sides.view.base
    if base is None:
        return f"{rows} rows differ although the partials of all txids are right."
    return (
        f"{rows} rows differ although the partials that are still there are right: "
        f"base {base.number}, as of txid {base.frontier}, was damaged, or a txid before it."
    )


def _all_are(comparison: Comparison, kind: Difference) -> Comparison:
    counts = {**dict.fromkeys(comparison.counts, 0), kind: sum(comparison.counts.values())}
    return replace(comparison, counts=counts, samples=tuple(replace(s, kind=kind) for s in comparison.samples))
