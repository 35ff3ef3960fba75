"""A large result that is not folded yet, compared without merging it: by its linear fingerprint, where that is enough.

Merging shuffles every row of the result, only to find in the usual case that all is well. Base and partials have the
fingerprint of the merged rows; the batch result's was kept when it was made, and its table is still what it was if its
digest is. Rows that a fingerprint cannot tell apart (docs/digests.md) are counted on the way; where there are any, and
where anything differs, rows are looked at. What merging would make of the states is seen on some of the keys.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from twinstream.operators.base import Operator
from twinstream.reconcile.compare import equal_comparison
from twinstream.reconcile.digests import BucketDigests, digest
from twinstream.reconcile.hashes import bucket, key_hash_in
from twinstream.reconcile.linear import LinearFingerprint, linear_fingerprint, linear_key, linear_measures
from twinstream.reconcile.prints import load_prints
from twinstream.reconcile.result import Comparison, Side
from twinstream.reconcile.shape import shape_of
from twinstream.reconcile.sides import Sides

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SMALL = 32_000_000
"""Bytes of files; what is smaller is merged quickly enough."""
ONE_IN = 256
"""Of so many keys one is merged to see how merging does it."""


def equal_without_merging(sides: Sides) -> Comparison | None:
    """That both sides are equal, if fingerprints can say so; None where rows have to be looked at."""
    if not _is_enough(sides):
        return None
    assert sides.run.folder is not None
    kept = load_prints(sides.home / sides.run.folder)
    if kept is None or kept.linear is None:
        return None
    some = sides.unmerged(base_files=1)
    if not merges_well(reduce(lambda one, other: one.unionByName(other), some), sides.operator):
        return None
    return compare_unmerged(sides.unmerged(), sides.batch(), sides.operator, sides.key, kept.digests, kept.linear)


def compare_unmerged(
    states: Sequence[DataFrame],
    batch: DataFrame,
    operator: Operator,
    key: Sequence[str],
    kept: BucketDigests,
    expected: LinearFingerprint,
) -> Comparison | None:
    """That states, were they merged, would be the batch result of these fingerprints; None where rows have to tell."""
    started = time.monotonic()
    with ThreadPoolExecutor(1) as beside:
        table = beside.submit(digest, batch, shape_of(batch.schema, key))
        streamed = reduce(add, (linear_fingerprint(some, operator) for some in states))
        found = table.result()
    same = found.hexdigest == kept.hexdigest and streamed.hexdigest == expected.hexdigest
    if not same or streamed.unclear or expected.unclear:
        return None
    seconds = time.monotonic() - started
    rows, mark = found.rows, found.hexdigest
    return equal_comparison(Side("stream", rows, mark, seconds), Side("batch", rows, mark, seconds), seconds)


def merges_well(states: DataFrame, operator: Operator) -> bool:
    """Whether merging makes of states what adding them up makes of them, key by key: seen on some of the keys.

    Readers are served merged rows, so a fingerprint of what they are merged from says nothing about the merging.
    """
    key, columns = linear_key(operator), [*linear_key(operator), *linear_measures(operator)]
    if not key:
        return False
    some = states.where(bucket(key_hash_in(states.select(*key).schema, key)) % ONE_IN == 0).select(*columns)
    fetched = some.toArrow()
    merged = operator.merge(states.sparkSession.createDataFrame(fetched, schema=some.schema).coalesce(1)).toArrow()
    # Names of users could be anything, so columns go by their places.
    places = [f"c{number}" for number in range(len(columns))]
    keys, measures = places[: len(key)], places[len(key) :]
    groups = fetched.rename_columns(places).group_by(keys).aggregate([(place, "sum") for place in measures])
    added = groups.select([*keys, *(f"{place}_sum" for place in measures)]).rename_columns(places)
    found = merged.select(columns).rename_columns(places)
    order = [(place, "ascending") for place in keys]
    return bool(found.sort_by(order).equals(added.cast(found.schema).sort_by(order)))


def _is_enough(sides: Sides) -> bool:
    """Whether there is much to merge, and nothing is asked that only merged rows can answer."""
    checks = sides.definition.pipeline.checks
    asks_rows = bool(checks.tolerance or checks.exclude or checks.non_negative or sides.scope)
    size = sum(file.size for file in (*sides.view.partial_files, *sides.view.base_files))
    much = bool(sides.view.partial_files) and size >= SMALL
    return much and not asks_rows and bool(linear_measures(sides.operator))
