"""Linear fingerprints: base plus partials is the merged result, and any other result is another fingerprint."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.spark.operators.draws import KINDS, draw_table
from tests.spark.operators.roads import batch, merged_at_once, stored_partials
from twinstream.operators import Aggregate, Append, avg, count, fixed, sum_
from twinstream.reconcile.linear import PRIMES, LinearFingerprint, linear_fingerprint, linear_measures

SUMMED = ["tiny", "big", "dec12", "dec28", "frac28"]
KINDS_HERE = {name: KINDS[name] for name in (*SUMMED, "str", "double")}
OPERATOR = Aggregate(
    ["case", "str", "double"],
    fixed("1 minute"),
    {"rows": count(), "some": count("big"), **{f"sum {name}": sum_(name) for name in SUMMED}},
)


def test_base_and_partials_add_up_to_the_result_by_either_road(spark, tmp_path, seed):
    rows = draw_table(KINDS_HERE, seed, cases=25).frame(spark)
    partials = stored_partials(OPERATOR, rows, tmp_path)
    base = linear_fingerprint(merged_at_once(OPERATOR, partials.where("_txid <= 5")), OPERATOR)
    after = linear_fingerprint(partials.where("_txid > 5"), OPERATOR)
    full = linear_fingerprint(batch(OPERATOR, rows), OPERATOR)
    assert (base + after).differing(full) == ()
    assert full - base == after
    assert (base + after).hexdigest == full.hexdigest
    assert LinearFingerprint.from_json(full.to_json()) == full
    assert base.differing(full) != ()


def in_one_bucket(fingerprint: LinearFingerprint) -> list[int]:
    """The fingerprint as it would be if all keys were in the same bucket."""
    columns = zip(*fingerprint.buckets.values(), strict=True)
    return [sum(column) % prime for column, prime in zip(columns, PRIMES, strict=True)]


@pytest.mark.parametrize(
    "change",
    [
        {"n": "n + if(k = 3, 1, 0)"},
        {"s": "cast(s + if(k = 3, 0.01, 0) as decimal(38,2))"},
        {"n": "n + if(k = 3, 1, if(k = 4, -1, 0))"},
        {"n": "if(k = 3, 4L, if(k = 4, 3L, n))"},
        {"s": "-s"},
        {"k": "if(k = 3, 99L, k)"},
        {"n": "n + if(k = 3, 1, 0)", "s": "cast(s - if(k = 3, 0.01, 0) as decimal(38,2))"},
    ],
)
def test_any_change_is_seen_also_when_totals_stay(spark, change):
    operator = Aggregate(["k"], None, {"n": count(), "s": sum_("v")})
    rows = spark.range(1, 30).selectExpr("id as k", "id as n", "cast(id * 7 as decimal(38,2)) as s")
    other = rows.selectExpr(*(f"{change.get(name, name)} as {name}" for name in rows.columns))
    before, after = (linear_fingerprint(table, operator) for table in (rows, other))
    assert before.differing(after) != ()
    assert in_one_bucket(before) != in_one_bucket(after), "seen only because the keys are in different buckets"


def test_the_largest_sums_do_not_overflow_and_null_is_nothing(spark):
    operator = Aggregate(["k"], None, {"n": count(), "s": sum_("v")})
    top, bottom = Decimal("9" * 36 + ".99"), Decimal("-" + "9" * 36 + ".99")
    make = lambda cells: spark.createDataFrame(cells, "k int, n bigint, s decimal(38,2)")  # noqa: E731
    parts = make([(1, 2**63 - 1, top), (1, -(2**63) + 5, bottom), (1, 0, Decimal("0.01")), (1, 0, None)])
    merged = make([(1, 4, Decimal("0.01"))])
    assert linear_fingerprint(parts, operator) == linear_fingerprint(merged, operator)


def test_only_counts_and_sums_are_linear():
    assert linear_measures(OPERATOR)[:2] == ("rows", "some")
    assert linear_measures(Aggregate(["k"], None, {"n": count(), "m": avg("v")})) == ()
    assert linear_measures(Append()) == ()
