"""Which txids a difference comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from twinstream.operators.base import col
from twinstream.reconcile.compare import KINDS, Found, find
from twinstream.reconcile.differences import differing_keys
from twinstream.reconcile.hashes import KEY_HASH, hash_of_key, key_hash_in
from twinstream.reconcile.options import Options
from twinstream.reconcile.partitions import few_partitions
from twinstream.reconcile.result import Comparison, Difference
from twinstream.reconcile.shape import common_shape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TXID = "_txid"
AsOf = Callable[[int, "DataFrame"], "tuple[DataFrame, DataFrame]"]
"""The result rows of both sides (stream, batch) as of a txid, for the keys in a table of keys."""


@dataclass(frozen=True)
class Behind:
    """The txids behind differences: how many rows of each differ, and of which txids each key's are."""

    counts: Mapping[int, Mapping[Difference, int]]
    of_key: Mapping[int, tuple[int, ...]]
    """Txids by the hash of the key."""

    def name_samples(self, found: Found) -> Comparison:
        """The comparison, its samples with their txids."""
        samples = (
            replace(sample, txids=self.of_key.get(key, ()))
            for key, sample in zip(found.sample_keys, found.comparison.samples, strict=True)
        )
        return replace(found.comparison, samples=tuple(samples))


def differing_txids(
    stored: DataFrame,
    fresh: DataFrame,
    key: Sequence[str],
    keys: DataFrame | None = None,
    options: Options | None = None,
) -> Behind:
    """Compares what the stream stored for each txid with what the source gives for it now, key by key.

    Both tables hold `_txid` and the same other columns, such as an operator's state rows. With `keys` (the key's
    columns) only their rows are looked at.
    """
    from pyspark.sql import functions as F

    if keys is not None:
        stored, fresh = (_only(rows, keys, key) for rows in (stored, fresh))
    options = replace(options or Options(), samples=0)
    counts: dict[int, dict[Difference, int]] = {}
    behind: dict[int, set[int]] = {}
    with find(stored, fresh, [TXID, *key], options) as found:
        if found.rows is None:
            return Behind({}, {})
        row = F.coalesce("stream", "batch")
        values = [(row.getField(f"c{place}"), found.shape.columns[name]) for place, name in enumerate([TXID, *key])]
        hashed = found.rows.select("kind", "n", values[0][0].alias(TXID), hash_of_key(values[1:]).alias(KEY_HASH))
        for txid, kind, key_hash, rows in hashed.groupBy(TXID, "kind", KEY_HASH).agg(F.sum("n")).collect():
            of_txid = counts.setdefault(txid, dict.fromkeys(KINDS, 0))
            of_txid[Difference(kind)] += rows
            behind.setdefault(key_hash, set()).add(txid)
    return Behind(dict(sorted(counts.items())), {k: tuple(sorted(txids)) for k, txids in behind.items()})


def bisect_txids(as_of: AsOf, keys: DataFrame, key: Sequence[str], low: int, high: int) -> dict[int, int]:
    """For each of the given keys a txid after which its rows differ and before which they did not, by its hash.

    For when no partials are at hand, only results as of a txid: at `low` both sides must be equal (at 0 there is
    nothing yet). A key that does not differ at `high` has no txid. All keys that are still between the same two txids
    share one look.
    """
    hashed = keys.select(*map(col, key), key_hash_in(keys.schema, key).alias(KEY_HASH))
    open_: dict[tuple[int, int], frozenset[int]] = {(low, high): _differing(as_of, high, hashed, None, key)}
    found: dict[int, int] = {}
    while open_:
        (equal, differ), among = open_.popitem()
        if not among:
            continue
        if differ - equal == 1:
            found |= dict.fromkeys(among, differ)
            continue
        middle = (equal + differ) // 2
        already = _differing(as_of, middle, hashed, among, key)
        open_[(equal, middle)] = already
        open_[(middle, differ)] = among - already
    return found


def _differing(
    as_of: AsOf, txid: int, hashed: DataFrame, among: frozenset[int] | None, key: Sequence[str]
) -> frozenset[int]:
    from pyspark.sql import functions as F

    asked = hashed if among is None else hashed.where(F.col(KEY_HASH).isin(sorted(among)))
    stream, batch = as_of(txid, asked.drop(KEY_HASH))
    differing = differing_keys(stream, batch, common_shape(stream.schema, batch.schema, key))
    with few_partitions(hashed.sparkSession):
        return frozenset(row[0] for row in differing.join(asked, KEY_HASH, "left_semi").collect())


def _only(rows: DataFrame, keys: DataFrame, key: Sequence[str]) -> DataFrame:
    from pyspark.sql import functions as F

    wanted = keys.select(key_hash_in(keys.schema, key).alias("_key_hash")).distinct()
    hashed = rows.withColumn("_key_hash", key_hash_in(rows.schema, key))
    return hashed.join(F.broadcast(wanted), "_key_hash", "left_semi").drop("_key_hash")
