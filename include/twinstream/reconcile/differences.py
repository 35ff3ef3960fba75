"""Row by row: which rows of two tables are not the same, and in what way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from twinstream.reconcile.hashes import KEY_HASH, ROW_HASHES, bucket, cells, comparable_rows, halves, hashed_rows
from twinstream.reconcile.result import Difference
from twinstream.reconcile.shape import Shape

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec


def rows_of_both(stream: DataFrame, batch: DataFrame, shape: Shape, buckets: Sequence[int] | None = None) -> DataFrame:
    """The rows of both sides, all of them or those in the given buckets."""
    from pyspark.sql import functions as F

    both = _both(comparable_rows(stream, shape), comparable_rows(batch, shape))
    return both if buckets is None else both.where(bucket(F.col(KEY_HASH)).isin(list(buckets)))


def differing_keys(stream: DataFrame, batch: DataFrame, shape: Shape) -> DataFrame:
    """The hashes of the keys whose rows are not the same: a digest per key, for when most buckets differ anyway."""
    from pyspark.sql import functions as F

    both = _both(hashed_rows(stream, shape), hashed_rows(batch, shape))
    sign = F.col("s") - F.col("b")
    sums = [F.sum(sign * half).alias(f"{name}{n}") for name in ROW_HASHES for n, half in enumerate(halves(F.col(name)))]
    grouped = both.groupBy(KEY_HASH).agg(F.sum(sign).alias("count"), *sums)
    differs = reduce(lambda one, other: one | other, (F.col(name) != 0 for name in grouped.columns[1:]))
    return grouped.where(differs).select(KEY_HASH)


def leftovers(rows: DataFrame, shape: Shape, tolerances: Mapping[str, Decimal]) -> DataFrame:
    """The rows that one side has more often than the other, with how often, and how many rows their key has.

    `s` and `b` count the row on either side, `ns` and `nb` the key's rows, `es` and `eb` those that are too many. Rows
    of one key, which come in one partition, are in the order of pairing: first what the other side has not at all.
    """
    from pyspark.sql import functions as F

    places = cells(shape)
    keys = _key_places(shape)
    counted = rows.groupBy(KEY_HASH, *places.values())
    counts = counted.agg(F.sum("s").alias("s"), F.sum("b").alias("b"))
    more = {"es": F.greatest(F.col("s") - F.col("b"), F.lit(0)), "eb": F.greatest(F.col("b") - F.col("s"), F.lit(0))}
    totals = {"ns": F.sum("s"), "nb": F.sum("b")} | {name: F.sum(value) for name, value in more.items()}
    of_key = {name: total.over(_of_key(shape)) for name, total in totals.items()}
    left = counts.withColumns(of_key).where("s != b")
    return left.sortWithinPartitions(KEY_HASH, *keys, F.least("s", "b"), *_order(shape, tolerances))


def classify(left: DataFrame, shape: Shape, tolerances: Mapping[str, Decimal]) -> DataFrame:
    """One row per difference: `kind`, how often (`n`), the row of either side (`stream`, `batch`), the key's counts.

    Rows of one key that are left on both sides are paired in order, first those that the other side has not at all: a
    pair is a mismatch. What remains on the stream's side is duplicated if the batch has the key, else phantom; what
    remains on the batch side is missing.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    places = cells(shape)
    ours = F.col("s") > F.col("b")
    count = F.abs(F.col("s") - F.col("b"))
    others = F.when(ours, F.col("eb")).otherwise(F.col("es"))
    in_side = Window.partitionBy(KEY_HASH, *_key_places(shape), "ours").orderBy(
        F.least("s", "b"), *_order(shape, tolerances)
    )
    placed = (
        left.withColumns({"ours": ours, "count": count, "others": others})
        .withColumn("end", F.sum("count").over(in_side.rowsBetween(Window.unboundedPreceding, 0)))
        .withColumn("start", F.col("end") - F.col("count"))
        .withColumn("paired", F.greatest(F.least("count", F.col("others") - F.col("start")), F.lit(0)))
        .withColumn("row", F.struct(*places.values()))
    )
    return _mismatched(placed, shape, tolerances).unionByName(_unpaired(placed))


def _mismatched(placed: DataFrame, shape: Shape, tolerances: Mapping[str, Decimal]) -> DataFrame:
    from pyspark.sql import functions as F

    keys = _key_places(shape)
    one = F.lit(1).cast("bigint")
    copies = placed.where("paired > 0").withColumn(
        "place", F.explode(F.sequence(F.col("start") + one, F.col("start") + F.col("paired")))
    )
    pairs = copies.groupBy(KEY_HASH, *keys, "place").agg(
        *(F.first(F.when(side, F.col("row")), ignorenulls=True).alias(name) for name, side in _sides().items()),
        F.first("ns").alias("ns"),
        F.first("nb").alias("nb"),
    )
    if tolerances:
        pairs = pairs.where(~reduce(and_, _cells_within(shape, tolerances)))
    kind = F.lit(Difference.MISMATCHED.value).alias("kind")
    return pairs.select(kind, KEY_HASH, one.alias("n"), "ns", "nb", "stream", "batch")


def _unpaired(placed: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    extra = F.when(F.col("nb") > 0, Difference.DUPLICATED.value).otherwise(Difference.PHANTOM.value)
    kind = F.when(F.col("ours"), extra).otherwise(Difference.MISSING.value).alias("kind")
    rows = [F.when(side, F.col("row")).alias(name) for name, side in _sides().items()]
    rest = (F.col("count") - F.col("paired")).alias("n")
    return placed.select(kind, KEY_HASH, rest, "ns", "nb", *rows).where("n > 0")


def _within(stream: Column, batch: Column, type_: str, limit: Decimal | None) -> Column:
    """Whether two values count as equal."""
    from pyspark.sql import functions as F

    same = stream.eqNullSafe(batch)
    if limit is None:
        return same
    apart = F.abs(F.try_subtract(stream, batch))
    close = apart <= (F.lit(float(limit)) if type_ == "double" else F.lit(limit))
    return same | F.coalesce(close, F.lit(False))


def _cells_within(shape: Shape, tolerances: Mapping[str, Decimal]) -> list[Column]:
    from pyspark.sql import functions as F

    return [
        _within(F.col(f"stream.{place}"), F.col(f"batch.{place}"), shape.columns[n].simpleString(), tolerances.get(n))
        for n, place in cells(shape).items()
    ]


def _sides() -> dict[str, Column]:
    from pyspark.sql import functions as F

    return {"stream": F.col("ours"), "batch": ~F.col("ours")}


def _both(stream: DataFrame, batch: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    one, none = F.lit(1).cast("bigint"), F.lit(0).cast("bigint")
    return stream.withColumns({"s": one, "b": none}).unionByName(batch.withColumns({"s": none, "b": one}))


def _key_places(shape: Shape) -> list[str]:
    places = cells(shape)
    return [places[name] for name in shape.key]


def _order(shape: Shape, tolerances: Mapping[str, Decimal]) -> list[str]:
    """Columns with a tolerance last, so that those that are close to each other stand at the same place."""
    places = cells(shape)
    exact = [place for name, place in places.items() if name not in tolerances]
    return [*exact, *(places[name] for name in tolerances)]


def _of_key(shape: Shape) -> WindowSpec:
    from pyspark.sql import Window

    return Window.partitionBy(KEY_HASH, *_key_places(shape))
