"""The txids behind differences: by comparing partials, and by bisecting on results as of a txid."""

from __future__ import annotations

from tests.spark.operators.draws import KINDS, draw_table
from tests.spark.operators.roads import stored_partials
from twinstream.operators import Aggregate, avg, count, fixed, sum_
from twinstream.reconcile.compare import find
from twinstream.reconcile.hashes import key_hash_in
from twinstream.reconcile.result import Difference
from twinstream.reconcile.txids import bisect_txids, differing_txids

OPERATOR = Aggregate(["case"], fixed("1 hour"), {"rows": count(), "total": sum_("int"), "mean": avg("int")})


def test_partials_that_differ_name_their_txids(spark, tmp_path, seed):
    rows = draw_table({"int": KINDS["int"]}, seed, cases=6, most=40).frame(spark)
    fresh = stored_partials(OPERATOR, rows, tmp_path)
    key = ["case", "window_start"]
    drawn = sorted({(row["case"], row["_txid"]) for row in fresh.select("case", "_txid").collect()})
    (first_case, first), (last_case, last) = drawn[0], next(one for one in reversed(drawn) if one[1] != drawn[0][1])
    assert first_case != last_case
    harmed = sorted([first, last])
    gone, other = f"_txid = {first} and case = {first_case}", f"_txid = {last} and case = {last_case}"
    stored = fresh.where(f"not ({gone})").selectExpr(
        "_txid", "case", "window_start", f"if({other}, rows + 1, rows) as rows", "total", "mean"
    )
    lost = fresh.where(gone).count()
    changed = fresh.where(other).count()

    results = [OPERATOR.present(OPERATOR.merge(frame.drop("_txid"))) for frame in (stored, fresh)]
    with find(*results, key) as found:
        keys = found.rows.selectExpr("coalesce(stream, batch).c0 as case", "coalesce(stream, batch).c1 as window_start")
        behind = differing_txids(stored, fresh, key, keys)
        named = behind.name_samples(found)

    assert list(behind.counts) == harmed
    assert behind.counts[first][Difference.MISSING] == lost
    assert behind.counts[last][Difference.MISMATCHED] == changed
    samples = {(sample.key["case"], sample.txids) for sample in named.samples}
    assert samples == {(str(first_case), (first,)), (str(last_case), (last,))}
    assert differing_txids(fresh, fresh, key).counts == {}


def test_bisecting_finds_the_txid_of_each_key(spark):
    rows = spark.range(0, 200).selectExpr("id % 8 + 1 as txid", "id div 8 % 5 as k", "id as v")
    harm = {1: 3, 2: 8, 3: 1}
    keys = spark.createDataFrame([(0,), (1,), (2,), (3,)], "k bigint")
    asked = []

    def as_of(txid, wanted):
        asked.append(txid)
        some = rows.where(f"txid <= {txid}").join(wanted, "k", "left_semi")
        right = some.groupBy("k").agg({"v": "sum"}).toDF("k", "total")
        late = " ".join(f"when k = {k} and {txid} >= {at} then 1" for k, at in harm.items())
        return right.selectExpr("k", f"total + case {late} else 0 end as total"), right

    found = bisect_txids(as_of, keys, ["k"], 0, 8)
    assert sorted(found.values()) == sorted(harm.values())
    hashes = {row[0]: row[1] for row in keys.select("k", key_hash_in(keys.schema, ["k"]).alias("h")).collect()}
    assert {k: found.get(h) for k, h in hashes.items()} == {0: None, **harm}
    assert sorted(asked) == [1, 2, 3, 4, 6, 7, 8], "one look for all keys between the same two txids"
