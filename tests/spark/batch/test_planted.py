"""Planted damage and planted bugs: exactly what was planted is found."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from tests.e2e.home import Home
from tests.spark.batch import damage
from tests.spark.batch.looks import counts, reconcile, stored
from twinstream.operators import Aggregate
from twinstream.reconcile.mending import Repairer
from twinstream.reconcile.result import Difference, Verdict
from twinstream.runtime.progress import Progress

Key = tuple[str, Any]
Values = tuple[int, Decimal | None]


def small(tmp_path: Path, spark: Any, events: int = 300) -> Home:
    """A stream without late records, so that every stored row counts."""
    home = Home.make(tmp_path / "home", spark)
    home.generate("page_views", events, events_per_file=events // 3, rate=0.5)
    return home


def merged(rows: Iterable[Any], *, by_txid: bool = False) -> dict[Any, Values]:
    """What partials add up to, in plain Python."""
    groups: dict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        key = (row["page"], row["window_start"])
        groups[(row["_txid"], *key) if by_txid else key].append(row)
    made = {}
    for key, found in groups.items():
        spend = [row["spend"] for row in found if row["spend"] is not None]
        made[key] = (sum(row["views"] for row in found), sum(spend, Decimal(0)) if spend else None)
    return made


def test_a_thousand_random_damages_are_found_exactly(tmp_path: Path, spark: Any, seed: int) -> None:
    home = small(tmp_path, spark, 6_000)
    home.drain("page_views", batch_records=2_000)
    honest, result_before = stored(home), home.read("page_views")
    chosen = random.Random(seed).sample(honest, 1_000)
    kinds = ["lost", "changed", "doubled", "phantom"]
    plan = [(*(row[name] for name in ("_txid", "page", "window_start")), kinds[n % 4]) for n, row in enumerate(chosen)]
    folder = damage.table_of(home, "page_views").folder
    planned = spark.createDataFrame(plan, "_txid bigint, page string, window_start timestamp, planted string")
    table = spark.read.format("delta").load(str(folder)).where("_kind = 'partial'")
    copies = table.join(planned.where("planted in ('doubled', 'phantom')"), ["_txid", "page", "window_start"])
    copies = copies.withColumn(
        "page", F.when(F.col("planted") == "phantom", F.concat(F.lit("/no"), "page")).otherwise(F.col("page"))
    )
    copies.select(*table.columns).write.format("delta").mode("append").save(str(folder))
    planned.where("planted in ('lost', 'changed')").createOrReplaceTempView("planned")
    spark.sql(
        f"merge into delta.`{folder}` t using planned p on t._kind = 'partial' and t._txid = p._txid "
        "and t.page = p.page and t.window_start = p.window_start "
        "when matched and p.planted = 'lost' then delete when matched then update set views = t.views + 1"
    )
    right, found = merged(honest), merged(stored(home))
    expected: Counter[Difference] = Counter()
    for key in {*right, *found}:
        if right.get(key) != found.get(key):
            kind = (
                Difference.MISSING
                if key not in found
                else Difference.PHANTOM
                if key not in right
                else Difference.MISMATCHED
            )
            expected[kind] += 1
    per_txid = merged(honest, by_txid=True), merged(stored(home), by_txid=True)
    txids = {key[0] for key in {*per_txid[0], *per_txid[1]} if per_txid[0].get(key) != per_txid[1].get(key)}
    result = reconcile(home)
    assert counts(result) == dict(expected)
    assert {one.txid for one in result.txids} == txids
    done = Repairer(home.engine(), Progress()).repair("page_views")
    assert done.after is not None
    assert done.after.verdict is Verdict.EQUAL
    assert home.read("page_views") == result_before


def test_a_bug_in_partial_is_caught(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    home = small(tmp_path, spark)
    right = Aggregate.partial

    def wrong(self: Any, rows: Any, by: Any, extra: Any) -> Any:
        return right(self, rows, by, extra).withColumn(
            "views", F.when(F.col("_txid") == 2, F.col("views") + 1).otherwise(F.col("views"))
        )

    with monkeypatch.context() as patched:
        patched.setattr(Aggregate, "partial", wrong)
        home.drain("page_views", batch_records=100)
    result = reconcile(home)
    assert set(counts(result)) == {Difference.MISMATCHED}
    assert [one.txid for one in result.txids] == [2]
    assert {cell.column for sample in result.comparison.samples for cell in sample.cells} == {"views"}


def test_a_bug_in_merge_is_caught(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    home = small(tmp_path, spark)
    home.drain("page_views", batch_records=100)
    right = Aggregate.merge
    monkeypatch.setattr(
        Aggregate, "merge", lambda self, states: right(self, states.dropDuplicates(["page", "window_start"]))
    )
    result = reconcile(home)
    assert set(counts(result)) == {Difference.MISMATCHED}
    assert result.txids == (), "what every txid stored is right"
    assert any("partials of all txids are right" in cause for cause in result.causes)


def test_a_prepare_that_is_not_pure_is_named(tmp_path: Path, spark: Any) -> None:
    home = small(tmp_path, spark)
    home.change(
        "page_views",
        '    prepare="select event_id, page, amount, at from events where page is not null",\n',
        "    prepare=unsteady,\n",
    )
    home.change(
        "page_views",
        "pipeline = Pipeline(",
        "import statistics\n\n\ndef unsteady(events):\n"
        "    chance = int(abs(statistics.NormalDist(0, 1_000_000).samples(1)[0]))\n"
        '    amount = f"cast(amount + {chance} as decimal(12,2)) as amount"\n'
        '    return events.selectExpr("event_id", "page", amount, "at").where("page is not null")\n'
        "\n\npipeline = Pipeline(",
    )
    home.drain("page_views", batch_records=100)
    result = reconcile(home)
    assert result.verdict is Verdict.DIFFERENT
    assert set(counts(result)) == {Difference.NON_DETERMINISTIC}
    assert any("not pure" in cause for cause in result.causes)
