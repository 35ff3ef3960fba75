"""compare against the truth in plain Python: every type, random damage, rows that share a key, nulls in the key."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal

import pytest

from tests.spark.reconcile.tables import EVERY_KIND, damage, draw_rows, truth
from twinstream.errors import BadUsage, ShapeMismatch
from twinstream.reconcile import compare as comparing
from twinstream.reconcile import keys
from twinstream.reconcile.compare import Known, compare, find
from twinstream.reconcile.options import Options
from twinstream.reconcile.result import Cell, Difference

KEY = ["id", "half"]
FEW = {name: EVERY_KIND[name] for name in ("str", "double", "dec12", "int")}


def counted(comparison):
    return Counter({kind.value: number for kind, number in comparison.counts.items() if number})


def by_key(comparison, limit):
    """Differences by key as the samples show them; all of them must fit under the limit."""
    found: dict = {}
    for sample in comparison.samples:
        key = (None if sample.key["id"] is None else int(sample.key["id"]), sample.key["half"])
        found.setdefault(key, set()).add(sample.kind.value)
    assert max(Counter(sample.kind for sample in comparison.samples).values()) < limit
    return found


@pytest.fixture(params=["few", "many"])
def either_way(request, monkeypatch):
    """Few differing rows are classified by the driver, many by Spark: both must say the same."""
    if request.param == "many":
        monkeypatch.setattr(comparing, "FEW_LEFT", 0)


@pytest.mark.parametrize("direct", [False, True], ids=["by buckets", "direct"])
def test_finds_exactly_the_planted_differences_of_every_type(spark, seed, monkeypatch, direct):
    if direct:
        monkeypatch.setattr(comparing, "MOST", 0)
        monkeypatch.setattr(comparing, "FEW_LEFT", 0)
    rng = random.Random(seed)
    batch = draw_rows(EVERY_KIND, rng, 80)
    stream = damage(batch, rng, 25)
    expected = truth(stream, batch, KEY)

    found = compare(stream.frame(spark), batch.frame(spark), KEY, Options(samples=10_000))

    assert counted(found) == sum(expected.values(), Counter())
    assert by_key(found, 10_000) == {key: set(kinds) for key, kinds in expected.items()}
    assert (found.stream.rows, found.batch.rows) == (len(stream.rows), len(batch.rows))
    assert sum(found.heat) == sum(found.counts.values())
    assert len(found.heat) == 256
    assert not found.equal


@pytest.mark.parametrize("broadcast", [0, 1000])
def test_direct_with_unique_keys_and_with_rows_that_are_there_twice(spark, monkeypatch, broadcast):
    monkeypatch.setattr(comparing, "MOST", 0)
    monkeypatch.setattr(keys, "MOST_TO_BROADCAST", broadcast)
    batch = spark.range(200).selectExpr("id", "id % 7 as n")
    changed = batch.where("id != 3").selectExpr("id", "if(id = 5, 9L, n) as n")
    assert counted(compare(changed, batch, ["id"])) == {"missing": 1, "mismatched": 1}
    doubled = changed.union(batch.where("id = 8"))
    twice = batch.union(batch.where("id = 9"))
    assert counted(compare(doubled, twice, ["id"])) == {"missing": 2, "mismatched": 1, "duplicated": 1}


def test_many_rows_of_few_keys_are_multisets(spark, seed, either_way):
    rng = random.Random(seed)
    kinds = {"int": EVERY_KIND["int"], "flag": EVERY_KIND["bool"]}
    batch = draw_rows(kinds, rng, 120)
    for row in batch.rows:
        row["id"], row["int"] = rng.choice([1, 2, None]), rng.choice([0, 1])
    stream = damage(batch, rng, 40)
    found = compare(stream.frame(spark), batch.frame(spark), KEY)
    assert counted(found) == sum(truth(stream, batch, KEY).values(), Counter())


def test_equal_tables_in_other_order_parts_and_types(spark, seed):
    rng = random.Random(seed)
    batch = draw_rows(EVERY_KIND, rng, 40)
    stream = batch.copy()
    rng.shuffle(stream.rows)
    wide = {"tiny": "bigint", "small": "int", "int": "decimal(12,1)", "dec12": "decimal(38,7)", "float": "double",
            "ints": "array<bigint>", "both": "struct<p:array<bigint>,q:array<smallint>>"}  # fmt: skip
    frame = stream.frame(spark, 5, wide)
    found = compare(frame.select(*sorted(frame.columns)), batch.frame(spark, 1), KEY)
    assert found.equal
    assert found.stream.digest == found.batch.digest
    assert found.differing_buckets == 0
    assert found.heat == (0,) * 256


def test_without_a_key_and_with_nothing(spark):
    one, other = spark.sql("select 1 as n, 2.5 as x"), spark.sql("select 1 as n, 3.5 as x")
    assert compare(one, one, []).equal
    found = compare(one, other, [])
    assert counted(found) == {"mismatched": 1}
    assert found.samples[0].cells == (Cell("x", "2.5", "3.5", "-1.0"),)
    nothing = one.where("false")
    assert compare(nothing, nothing, ["n"]).equal
    assert counted(compare(nothing, one, ["n"])) == {"missing": 1}
    assert counted(compare(one, nothing, ["n"])) == {"phantom": 1}


def test_samples_show_the_cells_and_how_far_they_are_apart(spark, either_way):
    shape = "k string, n int, d decimal(38,10), x double, at timestamp, s string"
    high, low = Decimal("9" * 28 + ".9999999999"), Decimal("-" + "9" * 28 + ".9999999999")
    rows = [["a", 2**31 - 1, high, 1.5, "2026-01-01 00:01:00", "v"], ["b", 1, None, 0.0, None, "w"]]
    others = [["a", -(2**31), low, 0.5, "2026-01-01 00:00:00", "v"], ["b", None, None, -0.0, None, "w"]]
    make = lambda cells: spark.createDataFrame(cells, shape.replace("timestamp", "string")).selectExpr(  # noqa: E731
        "k", "n", "d", "x", "cast(at as timestamp) at", "s"
    )
    found = compare(make(rows), make(others), ["k"])
    samples = {sample.key["k"]: sample for sample in found.samples}
    assert samples["a"].cells == (
        Cell("n", "2147483647", "-2147483648", "+4294967295"),
        Cell("d", str(high), str(low), "+19999999999999999999999999999.9999999998"),
        Cell("x", "1.5", "0.5", "+1.0"),
        Cell("at", "2026-01-01 00:01:00", "2026-01-01 00:00:00", "+60.000000 s"),
    )
    assert samples["b"].cells == (Cell("n", "1", None, None),)


def test_a_row_that_is_there_too_often_is_duplicated_and_its_altered_neighbour_mismatched(spark, either_way):
    batch = spark.sql("select * from values (1, 'a'), (1, 'c') as t(k, v)")
    stream = spark.sql("select * from values (1, 'a'), (1, 'a'), (1, 'b') as t(k, v)")
    found = compare(stream, batch, ["k"])
    assert counted(found) == {"mismatched": 1, "duplicated": 1}
    mismatched = next(sample for sample in found.samples if sample.kind is Difference.MISMATCHED)
    assert mismatched.cells == (Cell("v", "b", "c"),)
    assert (mismatched.stream_rows, mismatched.batch_rows) == (3, 2)


def test_a_row_that_is_there_a_million_times_too_often_is_counted_not_unrolled(spark, either_way):
    batch = spark.sql("select 1 as k, 'a' as v")
    stream = spark.range(1_000_001).selectExpr("1 as k", "'a' as v")
    assert counted(compare(stream, batch, ["k"])) == {"duplicated": 1_000_000}


def test_rows_of_one_key_that_are_close_to_each_other_are_paired(spark, either_way):
    make = lambda cells: spark.createDataFrame(cells, "k int, x double, s string")  # noqa: E731
    batch = make([(1, 1.0, "a"), (1, 2.0, "b"), (1, 3.0, "b")])
    assert compare(make([(1, 3.1, "b"), (1, 2.1, "b"), (1, 0.9, "a")]), batch, ["k"], Options(tolerance=0.2)).equal
    crossed = make([(1, 1.9, "a"), (1, 2.0, "b")]), make([(1, 2.0, "a"), (1, 1.95, "b")])
    assert compare(*crossed, ["k"], Options(tolerance=0.2)).equal
    found = compare(make([(1, 3.1, "b"), (1, 2.5, "b"), (1, 0.9, "a")]), batch, ["k"], Options(tolerance=0.2))
    assert [sample.cells for sample in found.samples] == [(Cell("x", "2.5", "2.0", "+0.5"),)]


def test_tolerance_by_column_and_for_all(spark):
    make = lambda n, d, x: spark.createDataFrame([(1, n, d, x)], "k int, n int, d decimal(12,2), x double")  # noqa: E731
    batch = make(10, Decimal("1.10"), 1.0)
    assert compare(make(11, Decimal("1.11"), 1.5), batch, ["k"], Options(tolerance=1)).equal
    assert compare(make(10, Decimal("1.11"), 1.0), batch, ["k"], Options(tolerance={"d": "0.01"})).equal
    far = compare(make(12, Decimal("1.11"), 1.0), batch, ["k"], Options(tolerance={"d": "0.01"}))
    assert [cell.column for cell in far.samples[0].cells] == ["n"]
    assert not compare(make(10, Decimal("1.12"), 1.0), batch, ["k"], Options(tolerance={"d": "0.01"})).equal
    assert not compare(make(10, None, 1.0), batch, ["k"], Options(tolerance=100)).equal
    assert not compare(make(10, Decimal("1.10"), float("nan")), batch, ["k"], Options(tolerance=100)).equal


def test_tolerance_never_overflows(spark, either_way):
    extreme = spark.createDataFrame([(1, 2**63 - 1)], "k int, n bigint")
    other = spark.createDataFrame([(1, -(2**63))], "k int, n bigint")
    assert counted(compare(extreme, other, ["k"], Options(tolerance=5))) == {"mismatched": 1}


def test_excluded_columns_are_not_compared_and_masked_ones_not_shown(spark, either_way):
    batch = spark.sql("select 1 as id, 'secret' as mail, 'x' as note")
    stream = spark.sql("select 1 as id, 'hidden' as mail, 'y' as note")
    assert compare(stream, batch, ["id"], Options(exclude=("mail", "note"))).equal
    found = compare(stream, batch, ["id"], Options(mask=("id", "mail")))
    assert found.samples[0].key == {"id": "•••"}
    assert found.samples[0].cells == (Cell("mail", "•••", "•••"), Cell("note", "y", "x"))
    assert "secret" not in repr(found)
    missing = compare(stream.where("false"), batch, ["id"], Options(mask=("mail",)))
    assert missing.samples[0].cells == (Cell("mail", None, "•••"), Cell("note", None, "x"))


def test_samples_are_capped_counts_are_not_and_the_choice_repeats(spark, either_way):
    batch = spark.range(300).selectExpr("id", "id as n")
    stream = spark.range(300).repartition(3).selectExpr("id", "id + id % 2 as n")
    first, second = (compare(rows, batch, ["id"], Options(samples=7)) for rows in (stream, stream.repartition(5)))
    assert counted(first) == {"mismatched": 150}
    assert len(first.samples) == 7
    assert first.samples == second.samples
    assert compare(stream, batch, ["id"], Options(samples=0)).samples == ()


def test_known_digests_save_the_scan_only_if_they_fit(spark):
    batch = spark.range(50).selectExpr("id", "id as n")
    with find(batch, batch, ["id"]) as found:
        known = found.digests[1]
    damaged = batch.where("id != 7")
    assert compare(batch, damaged, ["id"], known=Known(batch=known)).equal, "the digest was not used"
    assert counted(compare(batch, damaged, ["id"], Options(exclude=("n",)), Known(batch=known))) == {"phantom": 1}


def test_differences_can_be_read_as_rows_while_they_are_open(spark):
    batch = spark.range(50).selectExpr("id", "id as n")
    with find(batch.where("id > 1"), batch, ["id"]) as found:
        assert {row["kind"] for row in found.rows.collect()} == {"missing"}
        assert found.rows.selectExpr("batch.c0").distinct().count() == 2
        assert len(found.sample_keys) == len(found.comparison.samples) == 2


def test_the_session_keeps_its_settings(spark):
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "13")
    try:
        compare(spark.range(9).toDF("k"), spark.range(8).toDF("k"), ["k"])
        assert spark.conf.get("spark.sql.shuffle.partitions") == "13"
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)


@pytest.mark.parametrize(
    ("stream", "batch", "words"),
    [
        ("1 as k, 2 as v", "1 as k, 2 as w", ['"v" is only on the stream\'s side', '"w" is only on the batch side']),
        ("1 as k, 2 as v", "1 as k, 'x' as v", ['"v" is int on the stream\'s side and string on the batch side']),
        (
            "1 as k, cast(1 as decimal(38,0)) v",
            "1 as k, cast(1 as decimal(38,9)) v",
            ["decimal(38,0)", "decimal(38,9)"],
        ),
        ("1 as v", "1 as v", ['"k" is in the key but in neither table']),
        ("1 as k, parse_json('1') v", "1 as k, parse_json('1') v", ['"v" is variant']),
    ],
)
def test_tables_of_different_shape_are_refused_with_their_columns(spark, stream, batch, words):
    with pytest.raises(ShapeMismatch) as refused:
        compare(spark.sql(f"select {stream}"), spark.sql(f"select {batch}"), ["k"])
    assert all(word in str(refused.value) for word in words)


@pytest.mark.parametrize(
    "options",
    [
        Options(tolerance=-1),
        Options(tolerance="much"),
        Options(tolerance={"k": 1}),
        Options(tolerance={"s": 1}),
        Options(mask=("nobody",)),
        Options(samples=-1),
    ],
)
def test_options_that_make_no_sense_are_refused(spark, options):
    rows = spark.sql("select 1 as k, 2 as n, 'x' as s")
    with pytest.raises(BadUsage):
        compare(rows, rows, ["k"], options)


@pytest.mark.parametrize("exclude", ["k", "nobody"])
def test_columns_that_cannot_be_left_out_are_named(spark, exclude):
    rows = spark.sql("select 1 as k, 2 as n")
    with pytest.raises(ShapeMismatch, match=exclude):
        compare(rows, rows, ["k"], Options(exclude=(exclude,)))
