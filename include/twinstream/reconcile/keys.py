"""Which keys differ, when most buckets do: all rows are joined by their keys."""

from __future__ import annotations

from contextlib import ExitStack
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from twinstream.reconcile.differences import differing_keys, rows_of_both
from twinstream.reconcile.hashes import KEY_HASH, cells, comparable_rows
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

    found = _joined(stream, batch, shape, rows, stack)
    if found is not None:
        return found
    keys = differing_keys(stream, batch, shape).persist()
    stack.callback(keys.unpersist)
    number = keys.count()
    both = rows_of_both(stream, batch, shape)
    if 2 * number > sum(rows):
        return both
    return both.join(F.broadcast(keys) if number <= MOST_TO_BROADCAST else keys, KEY_HASH, "left_semi")


def _joined(
    stream: DataFrame, batch: DataFrame, shape: Shape, rows: tuple[int, int], stack: ExitStack
) -> DataFrame | None:
    """The rows of differing keys by one join; None if keys that both sides have are there several times.

    If the pairs and the rows without a partner make up both tables, no row has more than one partner, and comparing the
    two of each pair says all. Otherwise it does not: a row and two copies of it make two pairs of equal rows.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    places = list(cells(shape).values())
    sides = {"s": comparable_rows(stream, shape), "b": comparable_rows(batch, shape)}
    ours, theirs = (
        frame.select(KEY_HASH, F.lit(True).alias(side), *(F.col(place).alias(f"{side}{place}") for place in places))
        for side, frame in sides.items()
    )
    seen = Observation()
    joined = ours.join(theirs, KEY_HASH, "full_outer").observe(
        seen, *(F.count(F.when(F.col(side), F.lit(1))).alias(side) for side in sides)
    )
    same = reduce(and_, (F.col(f"s{place}").eqNullSafe(F.col(f"b{place}")) for place in places))
    apart = joined.where(F.col("s").isNull() | F.col("b").isNull() | ~same)
    one, none = F.lit(1).cast("bigint"), F.lit(0).cast("bigint")
    both = [
        F.struct(
            F.col(side).alias("there"),
            *(F.col(f"{side}{place}").alias(place) for place in places),
            (one if side == "s" else none).alias("s"),
            (one if side == "b" else none).alias("b"),
        )
        for side in sides
    ]
    exploded = apart.select(KEY_HASH, F.explode(F.array(*both)).alias("row"))
    found = exploded.where("row.there").select(KEY_HASH, "row.*").drop("there").persist()
    stack.callback(found.unpersist)
    found.count()
    return found if (seen.get["s"], seen.get["b"]) == rows else None
