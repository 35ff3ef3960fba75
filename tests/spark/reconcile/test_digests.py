"""Digests: the same for the same rows however they are stored, another one for any change, whatever totals it keeps."""

from __future__ import annotations

import random
from collections.abc import Iterable
from decimal import Decimal

import pytest

from tests.spark.reconcile.tables import EVERY_KIND, IDS, Rows, draw_row, same
from twinstream.reconcile.digests import BucketDigests, Digest, digest
from twinstream.reconcile.hashes import BUCKETS, hashed_rows, key_hash_in
from twinstream.reconcile.shape import common_shape, shape_of

MASK = (1 << 64) - 1
KEY = ["id"]


def numbered(rng: random.Random, count: int) -> Rows:
    """Rows whose key is their number."""
    kinds = {**IDS, **EVERY_KIND, "other": EVERY_KIND["str"], "more": EVERY_KIND["big"]}
    return Rows(kinds, [{**draw_row(kinds, rng), "id": number} for number in range(count)])


def hashes(spark, rows: Rows) -> dict[int, tuple[int, int, int]]:
    """The hashes of rows by their number, which is the key."""
    frame = rows.frame(spark)
    found = {row[0]: tuple(row) for row in hashed_rows(frame, shape_of(frame.schema, KEY)).collect()}
    numbers = {row[0]: row[1] for row in frame.select(key_hash_in(frame.schema, KEY), "id").collect()}
    assert len(found) == len(rows.rows)
    return {numbers[key]: row for key, row in found.items()}


def folded(rows: Iterable[tuple[int, int, int]]) -> BucketDigests:
    """The digests in plain Python."""
    made = BucketDigests("", {})
    for key, a, b in rows:
        one = Digest(1, a & MASK, b & MASK)
        made += BucketDigests("", {key & (BUCKETS - 1): one})
    return made


def test_any_order_split_and_partitioning_gives_the_same_digests(spark, seed):
    rng = random.Random(seed)
    rows = numbered(rng, 60)
    shape = shape_of(rows.frame(spark).schema, KEY)
    whole = digest(rows.frame(spark, 1), shape)
    mixed = Rows(rows.kinds, rng.sample(rows.rows, len(rows.rows)))
    parts = [digest(Rows(rows.kinds, some).frame(spark, 3), shape) for some in (mixed.rows[:13], mixed.rows[13:])]
    assert whole.buckets == folded(hashes(spark, rows).values()).buckets
    assert parts[0] + parts[1] == whole
    assert whole - parts[0] == parts[1]
    assert (whole.rows, whole.differing(parts[0] + parts[1])) == (60, ())
    assert BucketDigests.from_json(whole.to_json()) == whole
    assert digest(mixed.frame(spark).where("false"), shape).buckets == {}


def test_any_change_of_any_cell_changes_both_hashes(spark, seed):
    rng = random.Random(seed)
    before = numbered(rng, 300)
    after = before.copy()
    names = [name for name in before.kinds if name != "id"]
    for place, row in enumerate(after.rows):
        name = names[place % len(names)]
        other = row[name]
        while same(other) == same(row[name]):
            other = None if rng.random() < 0.3 else before.kinds[name].draw(rng)
        row[name] = other
    ours, theirs = hashes(spark, before), hashes(spark, after)
    for which in (1, 2):
        assert [key for key in ours if ours[key][which] == theirs[key][which]] == []


@pytest.mark.parametrize("digits", [1, 13, 14, 15, 16, 17, 37])
@pytest.mark.parametrize("scale", [0, 2, 20])
def test_the_last_digit_of_a_wide_decimal_is_seen_by_both_hashes(spark, digits, scale):
    texts = (f"{'123456789' * 5}"[:digits] + "1", f"{'123456789' * 5}"[:digits] + "2")
    numbers = [Decimal(f"{text}e-{scale}") for text in texts]
    wide = f"id bigint, n decimal(38,{scale})"
    one, other = (spark.createDataFrame([(1, number)], wide) for number in numbers)
    shape = shape_of(one.schema, ["id"])
    (first,), (second,) = (hashed_rows(frame, shape).collect() for frame in (one, other))
    assert first["h1"] != second["h1"]
    assert first["h2"] != second["h2"]
    assert digest(one, shape) != digest(other, shape)


def test_nulls_and_values_that_change_places_are_seen(spark):
    kinds = {
        "id": IDS["id"],
        **{name: EVERY_KIND[name] for name in ("str", "big", "ints", "both")},
        "other": EVERY_KIND["str"],
        "more": EVERY_KIND["big"],
        "ints2": EVERY_KIND["ints"],
    }
    empty = dict.fromkeys(kinds)
    pairs = [
        ({"str": "x"}, {"other": "x"}),
        ({"big": 1, "more": 2}, {"big": 2, "more": 1}),
        ({"ints": [1, None]}, {"ints": [None, 1]}),
        ({"ints": []}, {"ints": None}),
        ({"ints": []}, {"ints": [None]}),
        ({"ints": [None]}, {"ints": [None, None]}),
        ({"ints": [1, 2], "ints2": []}, {"ints": [1], "ints2": [2]}),
        ({"both": ([1], [2])}, {"both": ([1, 2], [])}),
        ({"both": (None, [1])}, {"both": ([1], None)}),
        ({"both": (None, None)}, {"both": None}),
        ({"str": "ab", "other": "c"}, {"str": "a", "other": "bc"}),
        ({"str": ""}, {"str": None}),
    ]
    sides = [Rows(kinds, [{**empty, **pair[side], "id": n} for n, pair in enumerate(pairs)]) for side in (0, 1)]
    ours, theirs = (hashes(spark, side) for side in sides)
    assert [key for key in ours if ours[key][1] == theirs[key][1] or ours[key][2] == theirs[key][2]] == []


def test_changes_that_keep_count_total_or_xor_are_seen(spark, seed):
    rng = random.Random(seed)
    rows = numbered(rng, 40)
    for number, row in enumerate(rows.rows):
        row["big"] = number
    swapped = rows.copy()
    one, other = rng.sample(range(40), 2)
    swapped.rows[one]["big"], swapped.rows[other]["big"] = rows.rows[other]["big"], rows.rows[one]["big"]
    before, after = hashes(spark, rows), hashes(spark, swapped)
    assert len(folded(before.values()).differing(folded(after.values()))) in (1, 2)

    every = list(before.values())
    x, y = every[0], every[1]
    whole = folded(every)
    assert folded([*every, x, x]) != whole, "two copies cancel in the XOR"
    assert folded([x, x]).buckets[x[0] & (BUCKETS - 1)].xor == 0
    same_bucket = (x[0], y[1], y[2])
    assert folded([x, x]) != folded([same_bucket, same_bucket]), "pairs cancel in the XOR, and the count is the same"
    assert folded([x, same_bucket]) != folded([x, x])


def test_equal_values_of_other_types_have_one_hash(spark):
    narrow = spark.sql("select 1 k, cast(7 as tinyint) n, 1.50 d, cast(0.5 as float) x, array(1, null) a, map(1, 2) m")
    wide = spark.sql(
        "select 1L k, cast(7 as decimal(20,3)) n, cast(1.5 as decimal(30,9)) d, 0.5D x, array(1L, null) a,"
        " map(1L, 2L) m"
    )
    shape = common_shape(narrow.schema, wide.schema, ["k"])
    assert digest(narrow, shape) == digest(wide, shape)


def test_zeros_nans_and_the_order_of_a_map_make_no_difference(spark):
    one = spark.sql("select 1 k, -0.0D z, double('NaN') n, array(-0.0D) a, struct(-0.0D as x) s, map('a', 1, 'b', 2) m")
    other = spark.sql("select 1 k, 0.0D z, -double('NaN') n, array(0.0D) a, struct(0.0D as x) s, map('b', 2, 'a', 1) m")
    shape = common_shape(one.schema, other.schema, ["k"])
    assert digest(one, shape) == digest(other, shape)


def test_extreme_hashes_never_overflow(spark):
    rows = spark.range(20_000).selectExpr("0 as k", "id % 2 as v")
    found = digest(rows, shape_of(rows.schema, ["k"]))
    assert (found.rows, len(found.buckets)) == (20_000, 1)


def test_more_columns_than_bits_in_one_bitmap(spark):
    names = [f"c.{number}" for number in range(70)]
    empty = spark.createDataFrame([(1, *[None] * 70)], ", ".join(f"`{name}` int" for name in ["k", *names]))
    shape = shape_of(empty.schema, ["k"])
    from pyspark.sql import functions as F

    one, other = (empty.withColumn(name, F.lit(5)) for name in ("c.3", "c.66"))
    assert len({digest(rows, shape).hexdigest for rows in (empty, one, other)}) == 3
