"""Which keys differ, when most buckets do: the rows' hashes are joined, a few bytes each instead of whole rows."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from twinstream.reconcile.differences import differing_keys, rows_of_both
from twinstream.reconcile.hashes import KEY_HASH, ROW_HASHES, hashed_rows
from twinstream.reconcile.shape import Shape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_TO_BROADCAST = 250_000
"""Key hashes that are sent to every task instead of shuffling the rows towards them."""


def rows_of_differing_keys(
    stream: DataFrame, batch: DataFrame, shape: Shape, rows: tuple[int, int], stack: ExitStack
) -> DataFrame:
    """The rows of both sides whose key differs in any row; what is kept at hand for it is let go with the stack."""
    from pyspark.sql import functions as F

    keys = _unmatched(stream, batch, shape, rows, stack)
    if keys is None:
        keys = differing_keys(stream, batch, shape).persist()
        stack.callback(keys.unpersist)
    number = keys.count()
    both = rows_of_both(stream, batch, shape)
    if 2 * number > sum(rows):
        return both
    return both.join(F.broadcast(keys) if number <= MOST_TO_BROADCAST else keys, KEY_HASH, "left_semi")


def _unmatched(
    stream: DataFrame, batch: DataFrame, shape: Shape, rows: tuple[int, int], stack: ExitStack
) -> DataFrame | None:
    """The keys of rows that the other side has not, None if rows are there several times, for then this is no proof.

    Every pair of equal rows is found once: if the pairs and the rows without a partner make up both tables, no row has
    more than one partner, and what has one is there equally often on both sides.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    ours = hashed_rows(stream, shape).withColumn("s", F.lit(True))
    theirs = hashed_rows(batch, shape).withColumn("b", F.lit(True))
    seen = Observation()
    joined = ours.join(theirs, [KEY_HASH, *ROW_HASHES], "full_outer").observe(
        seen,
        F.count(F.when(F.col("s"), F.lit(1))).alias("stream"),
        F.count(F.when(F.col("b"), F.lit(1))).alias("batch"),
    )
    keys = joined.where("s is null or b is null").select(KEY_HASH).distinct().persist()
    stack.callback(keys.unpersist)
    keys.count()
    return keys if (seen.get["stream"], seen.get["batch"]) == rows else None
