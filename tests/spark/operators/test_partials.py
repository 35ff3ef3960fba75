"""What the runtime relies on beside the result: riders, rows that are not kept, windows, lateness, nothing at all."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from tests.spark.operators.draws import KINDS, TIMES, draw_table
from tests.spark.operators.roads import shown
from twinstream.operators import Aggregate, Append, approx_distinct, avg, count, first, fixed, last, max_, sum_

VIEWS = Aggregate(["str"], fixed("1 minute"), {"views": count(), "total": sum_("int")})


def test_extra_aggregates_ride_along_and_count_every_row(spark, seed):
    from pyspark.sql import functions as F

    table = draw_table({"str": KINDS["str"], "int": KINDS["int"]}, seed)
    extra = [F.count("*").alias("_records"), F.bit_xor(F.xxhash64("_record_id")).alias("_xor")]
    partials = VIEWS.partial(table.frame(spark), ["_txid", "_class"], extra)
    states = list(VIEWS.state_columns(table.columns))
    assert partials.columns == ["_txid", "_class", *states, "_records", "_xor"]

    rows = partials.withColumn("window_start", F.col("window_start").cast("string")).collect()
    assert sum(row["_records"] for row in rows) == len(table.rows)
    kept = [row for row in rows if row["_class"] == "kept"]
    others = [row for row in rows if row["_class"] != "kept"]
    assert sum(row["views"] for row in kept) == sum(row["_kept"] for row in table.rows)
    assert all(row["str"] is None and row["window_start"] is None for row in others)
    assert len(others) == len({row["_txid"] for row in table.rows if not row["_kept"]})


def test_a_partial_is_one_hash_aggregation(spark, seed, capsys):
    rows = draw_table({"str": KINDS["str"], "int": KINDS["int"]}, seed).frame(spark)
    VIEWS.partial(rows, ["_txid"], []).explain()
    text = capsys.readouterr().out
    assert text.count("HashAggregate") == 2
    assert text.count("Exchange") == 1
    assert "SortAggregate" not in text


def test_a_measure_may_bear_the_name_of_another_column(spark, seed):
    """`int` as a result must not shadow `int` as a source."""
    rows = draw_table({"str": KINDS["str"], "int": KINDS["int"]}, seed).frame(spark).where("_kept")
    operator = Aggregate(["case"], None, {"int": count(), "str": max_("str"), "total": sum_("int")})
    merged = operator.present(operator.merge(operator.partial(rows, ["_txid"], []).drop("_txid")))
    assert shown(merged) == shown(operator.full(rows))


def test_windows_by_arithmetic_are_sparks_windows(spark, seed):
    from pyspark.sql import functions as F

    rng = random.Random(seed)
    micros = [*TIMES, *(rng.randint(-(10**17), 10**17) for _ in range(300)), *range(-3, 4)]
    frame = spark.createDataFrame([(value,) for value in micros], "m bigint").select(
        "m", F.timestamp_micros("m").alias("t")
    )
    for length in (1, 7, 1_000_000, 60_000_000, 86_400_000_000, 604_800_000_000, rng.randint(1, 10**12)):
        window = fixed(f"{length} microseconds")
        start = window.start(F.col("t"))
        ours = frame.select("m", F.unix_micros(start), F.unix_micros(window.end(start))).collect()
        native = F.window("t", window.duration)
        spark_s = frame.select("m", native.alias("w")).select("m", F.unix_micros("w.start"), F.unix_micros("w.end"))
        truth = [(m, m // length * length, m // length * length + length) for m in micros]
        assert sorted(ours) == sorted(spark_s.collect()) == sorted(truth), f"length {length}, seed {seed}"


@pytest.mark.parametrize(
    "operator",
    [
        Aggregate(measures={"rows": count(), "total": sum_("int"), "mean": avg("int")}),
        Aggregate(measures={"seen": approx_distinct("str"), "opener": first("str"), "closer": last("str")}),
        VIEWS,
        Append(),
    ],
    ids=["global", "global sketches", "windowed", "append"],
)
def test_no_rows_make_no_result(spark, seed, operator):
    table = draw_table({"str": KINDS["str"], "int": KINDS["int"]}, seed, cases=1)
    nothing = table.frame(spark).where("false")
    partials = operator.partial(nothing, [], [])
    assert partials.dtypes == list(operator.state_columns(table.columns).items())
    assert operator.full(nothing).collect() == []
    assert partials.collect() == operator.merge(partials).collect() == []
    assert operator.present(operator.merge(partials)).collect() == []


def test_a_group_of_nulls_has_null_sums_and_zero_counts(spark):
    rows = spark.sql(
        "select cast(null as int) as n, cast(null as string) as s, true as _kept, timestamp_micros(0L) as _event_time,"
        " 'a' as _record_id"
    )
    operator = Aggregate(
        measures={
            "rows": count(),
            "values": count("n"),
            "total": sum_("n"),
            "mean": avg("n"),
            "top": max_("n"),
            "seen": approx_distinct("s"),
            "end": last("s"),
        }
    )
    expected = [(1, 0, None, None, None, 0, None)]
    assert operator.full(rows).collect() == expected
    partials = operator.partial(rows, [], [])
    assert operator.present(partials).collect() == expected
    assert operator.present(operator.merge(partials.union(partials))).collect() == [(2, *expected[0][1:])]


@pytest.mark.parametrize(("at", "late"), [("00:59:59.999999", False), ("01:00:00", True), (None, False)])
def test_a_window_is_late_once_the_watermark_reaches_its_end(spark, at, late):
    from pyspark.sql import functions as F

    states = spark.createDataFrame(
        [("a", datetime(2026, 1, 1, 0, 59, tzinfo=UTC))], "page string, window_start timestamp"
    )
    threshold = F.lit(f"2026-01-01 {at}" if at else None).cast("timestamp")
    operator = Aggregate(["page"], fixed("1 minute"), {"rows": count()})
    assert states.select(operator.late(threshold)).collect() == [(late,)]


@pytest.mark.parametrize(("at", "late"), [("00:59:00", False), ("00:59:00.000001", True), (None, False)])
def test_an_appended_row_is_late_below_the_watermark(spark, at, late):
    from pyspark.sql import functions as F

    states = spark.createDataFrame([(datetime(2026, 1, 1, 0, 59, tzinfo=UTC),)], "_event_time timestamp")
    threshold = F.lit(f"2026-01-01 {at}" if at else None).cast("timestamp")
    assert states.select(Append().late(threshold)).collect() == [(late,)]


def test_without_a_window_a_state_row_cannot_tell_whether_it_is_late(spark):
    from pyspark.sql import functions as F

    assert Aggregate(["page"], None, {"rows": count()}).late(F.lit(None)) is None


def test_append_keeps_equal_rows_and_empties_those_that_are_not_kept(spark):
    rows = spark.sql(
        "select * from values (1L, 'a', true), (1L, 'a', true), (2L, 'b', false), (2L, 'c', null) as t(_txid, s, _kept)"
    ).selectExpr("*", "timestamp_micros(0L) as _event_time", "s as _record_id")
    partials = Append().partial(rows, ["_txid", "_kept"], [])
    assert partials.columns == ["_txid", "_kept", "_event_time", "s"]
    kept = partials.where("_kept")
    assert Append().present(Append().merge(kept)).collect() == [("a",), ("a",)]
    assert partials.where("not coalesce(_kept, false)").select("s").collect() == [(None,), (None,)]
