"""Sums and averages to the last digit, and distinct counts that no split changes."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction

import pytest

from tests.spark.operators.roads import merged_at_once, merged_by_tree
from tests.spark.operators.test_truth import half_up
from twinstream.operators import Aggregate, approx_distinct, avg, sum_
from twinstream.operators.measures.sums import fast_sum
from twinstream.operators.ratio import exact_average

MAX_BIGINT = 2**63 - 1


def test_a_sum_of_bigints_passes_their_range_on_the_way(spark):
    from pyspark.sql import functions as F

    values = [MAX_BIGINT] * 5 + [-MAX_BIGINT - 1] * 5 + [MAX_BIGINT] * 3
    frame = spark.createDataFrame([(value,) for value in values], "n bigint").select(
        "n", F.lit(1).alias("_txid"), F.lit(True).alias("_kept")
    )
    operator = Aggregate(measures={"total": sum_("n"), "mean": avg("n")})
    expected = [(Decimal(sum(values)), half_up(Fraction(sum(values), len(values)), 4))]
    assert operator.full(frame).collect() == expected
    assert operator.present(operator.merge(operator.partial(frame, ["_txid"], []))).collect() == expected


def test_merged_sums_that_pass_the_widest_decimal_raise_and_do_not_wrap(spark):
    from pyspark.errors import ArithmeticException

    operator = Aggregate(measures={"total": sum_("n")})
    states = spark.createDataFrame([(Decimal(10**38 - 1),), (Decimal(1),)], "total decimal(38,0)")
    with pytest.raises(ArithmeticException):
        operator.merge(states).collect()


@pytest.mark.parametrize("scale", [0, 2, 7, 28])
def test_averages_are_rounded_once(spark, seed, scale):
    """Sums of up to 38 digits, and quotients as near to a tie as a count can bring them, on either side."""
    from pyspark.sql import functions as F

    rng = random.Random(seed)
    pairs = [(0, 1), (10**28 - 1, 1), (1 - 10**28, 1), (10**38 - 1, 10**10 + 1), (1, MAX_BIGINT), (-1, 20_000)]
    for _ in range(300):
        count = rng.choice([1, 2, 3, 7, 20_000, 160_000, rng.randint(1, 10**6), rng.randint(1, 10**10)])
        tie = Fraction(2 * rng.randint(-(10**31), 10**31) + 1, 20_000)
        near = tie * count
        pairs += [(near.__floor__(), count), (near.__ceil__(), count), (rng.randint(-(10**28), 10**28), count)]
    pairs = [(units, count) for units, count in pairs if abs(units) < 10**38 and abs(units) < count * 10**28]
    rows = [(Decimal((units < 0, tuple(map(int, str(abs(units)))), -scale)), count) for units, count in pairs]
    frame = spark.createDataFrame(rows, f"total decimal(38,{scale}), n bigint")
    averages = frame.select(exact_average(F.col("total"), F.col("n"), scale).alias("mean"))
    assert averages.dtypes == [("mean", f"decimal(38,{scale + 4})")]
    for (units, count), row in zip(pairs, averages.collect(), strict=True):
        assert row.mean == half_up(Fraction(units, count * 10**scale), scale + 4), (units, count, f"seed {seed}")


def test_sparks_average_of_many_rows_is_rounded_once_too(spark):
    """full relies on it: 200,001 values whose mean of 32 digits lies just beside a tie, on either side."""
    from pyspark.sql import functions as F

    rows, big = 200_001, 10**27
    lower = F.explode(F.array(F.lit(10), F.lit(11))).alias("lower")
    value = F.lit(str(big)).cast("decimal(28,0)") - F.when(F.col("id") < F.col("lower"), 1).otherwise(0)
    frame = spark.range(rows).select("id", lower).select("lower", value.cast("decimal(28,0)").alias("n"))
    frame = frame.withColumn("_kept", F.lit(True))
    operator = Aggregate(["lower"], None, {"mean": avg("n")})
    expected = [(lower, half_up(Fraction(big * rows - lower, rows), 4)) for lower in (10, 11)]
    assert sorted(operator.full(frame).collect()) == expected
    assert sorted(operator.present(operator.partial(frame, [], [])).collect()) == expected


def test_distinct_counts_do_not_depend_on_the_split(spark, seed):
    """Around the size up to which a sketch is exact, where it begins to drop hashes, and far beyond."""
    from pyspark.sql import functions as F

    sizes = (1, 4095, 4096, 4097, 7_600, 8_193, 40_000)
    size = F.explode(F.array(*map(F.lit, sizes))).alias("size")
    rows = spark.range(2 * max(sizes)).select("id", size).where("id < 2 * size")
    rows = rows.select(
        "size",
        F.concat(F.lit("user "), F.col("id") % F.col("size")).alias("user"),
        (F.rand(seed) * 9 + 1).cast("bigint").alias("_txid"),
        F.lit(True).alias("_kept"),
    )
    operator = Aggregate(["size"], None, {"users": approx_distinct("user")})
    expected = dict(operator.full(rows).collect())
    assert expected == {size: size if size <= 4096 else pytest.approx(size, rel=0.06) for size in sizes}
    for frame in (rows, rows.repartition(5, F.rand(seed + 1))):
        partials = operator.partial(frame, ["_txid"], []).persist()
        assert dict(operator.present(merged_at_once(operator, partials)).collect()) == expected, f"seed {seed}"
        assert dict(operator.present(merged_by_tree(operator, partials, seed)).collect()) == expected, f"seed {seed}"
        partials.unpersist()


@pytest.mark.parametrize(
    ("type_", "values", "expected"),
    [
        ("string", ["", None, "a", "", " "], 3),
        ("string", [None, None], 0),
        ("binary", [b"", b"\0", None], 2),
        ("double", [0.0, -0.0, float("nan"), -float("nan"), None, 1.0], 3),
        ("decimal(38,10)", [Decimal("1.0"), Decimal("1.00"), Decimal("-1"), None], 2),
        ("boolean", [True, False, None], 2),
        ("tinyint", [0, 42, None], 2),
    ],
)
def test_what_counts_as_distinct(spark, type_, values, expected):
    from pyspark.sql import functions as F

    rows = spark.createDataFrame([(value,) for value in values], f"v {type_}").withColumn("_kept", F.lit(True))
    operator = Aggregate(measures={"n": approx_distinct("v")})
    assert operator.full(rows).collect() == [(expected,)]
    assert operator.present(operator.partial(rows, [], [])).collect() == [(expected,)]


@pytest.mark.parametrize("digits", [15, 16])
def test_decimals_are_added_exactly_at_every_scale(spark, seed, digits):
    """15 digits go through doubles, 16 do not; the largest, the smallest and random ones."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import DecimalType

    scales = range(14)
    chance = random.Random(seed)
    edge = 10**digits - 1
    units = [edge, -edge, edge - 1, 1, -1, 0, *(chance.randint(-edge, edge) for _ in range(500))]
    frame = spark.createDataFrame(
        [tuple(Decimal(one).scaleb(-scale) for scale in scales) for one in units] + [(None,) * len(scales)],
        ", ".join(f"d{scale} decimal({digits},{scale})" for scale in scales),
    )
    sums = [fast_sum(F.col(f"d{scale}"), DecimalType(digits, scale)).alias(f"d{scale}") for scale in scales]
    found = frame.agg(*sums)
    assert [kind for _, kind in found.dtypes] == [f"decimal(38,{scale})" for scale in scales]
    assert list(found.first()) == [Decimal(sum(units)).scaleb(-scale) for scale in scales]
    assert list(frame.where("d0 is null").agg(*sums).first()) == [None] * len(scales)
