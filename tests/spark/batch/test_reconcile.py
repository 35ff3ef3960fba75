"""Is what was streamed what should have been? Equal when it is, and every damage found, named and mended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from tests.e2e.home import Home
from tests.spark.batch import damage
from tests.spark.batch.looks import counts, reconcile, stored
from twinstream.batch.layer import BatchLayer
from twinstream.errors import LedgerSinkMismatch, ReportError
from twinstream.reconcile.certificate import load
from twinstream.reconcile.mending import Repairer
from twinstream.reconcile.result import Difference, Verdict
from twinstream.reconcile.scrub import scrub
from twinstream.reconcile.verify import verify
from twinstream.runtime.progress import Progress


def test_an_honest_stream_is_equal_and_its_certificate_verifies(home: Home) -> None:
    result = reconcile(home)
    assert result.verdict is Verdict.EQUAL, result
    assert result.comparison.stream.rows == result.comparison.batch.rows > 0
    assert result.late.records > 0
    assert all(one.success for one in result.expectations if one.severity != "info")
    assert (home.folder / "reports" / "page_views" / f"{result.id}.html").is_file()
    content = load(home.folder, "page_views", damage.table_of(home, "page_views").folder.name, None)
    checks = verify(home.engine(), content)
    assert [check for check in checks if check.holds is not True] == []
    older = verify(home.engine(), {**content, "stream": {**content["stream"], "digest": "2:0123"}})
    assert [(check.holds, "in another form" in check.detail) for check in older[-1:]] == [(None, True)]
    assert scrub(home.engine(), "page_views").damaged == ()


def test_damage_is_found_named_and_mended_while_the_stream_goes_on(home: Home) -> None:
    """A row deleted, one changed, one added twice, one that never was; the txids named; repaired."""
    rows = stored(home, "_txid = 1")
    lost, changed, doubled = rows[0], rows[3], rows[6]
    damage.delete(home, "page_views", damage.is_row(lost))
    damage.change(home, "page_views", damage.is_row(changed), {"views": str(changed["views"] + 5)})
    damage.add(home, "page_views", doubled)
    damage.add(home, "page_views", rows[9], page="/never")
    assert [one.txid for one in scrub(home.engine(), "page_views").damaged] == [1]
    result = reconcile(home)
    assert result.verdict is Verdict.DIFFERENT
    named = {(s.key["page"], s.kind) for s in result.comparison.samples}
    assert ("/never", Difference.PHANTOM) in named
    assert {lost["page"], changed["page"], doubled["page"]} <= {page for page, _ in named}
    assert sum(counts(result).values()) == 4
    assert [one.txid for one in result.txids] == [1]
    assert {txid for sample in result.comparison.samples for txid in sample.txids} == {1}
    repairer = Repairer(home.engine(), Progress())
    assert counts(repairer.repair("page_views", dry_run=True).before) == counts(result)
    home.generate("page_views", 200, events_per_file=100, seed=8, rate=0.5)
    with pytest.raises(LedgerSinkMismatch, match="removed or changed"):
        home.drain("page_views", batch_records=100)
    assert len(home.ranges("page_views")) > result.frontier, "the stream goes on all the same"
    done = repairer.repair("page_views", result.frontier)
    assert done.after is not None
    assert done.after.verdict is Verdict.EQUAL
    assert home.read("page_views") == sorted(tuple(row) for row in home.truth("page_views", "side").rows)
    assert reconcile(home).verdict is Verdict.EQUAL


def test_a_batch_table_that_something_else_has_changed_proves_nothing(home: Home) -> None:
    reconcile(home)
    run = BatchLayer(home.engine()).newest("page_views")
    assert run is not None
    assert run.folder is not None
    home.spark.sql(f"delete from delta.`{home.folder / run.folder / 'table'}` where views = 2")
    with pytest.raises(ReportError, match="is not what was recomputed"):
        reconcile(home)
    assert reconcile(home, fresh=True).verdict is Verdict.EQUAL


def test_rows_that_stand_for_themselves_are_duplicated_missing_or_phantoms(tmp_path: Path, spark: Any) -> None:
    home = Home.make(tmp_path / "home", spark)
    home.generate("orders", 120, events_per_file=40, rate=0.5)
    home.drain("orders", batch_records=40)
    folder = damage.table_of(home, "orders").folder
    rows = (
        spark.read.format("delta").load(str(folder)).where("_kind = 'partial'").orderBy("_txid", "order_id").collect()
    )
    one, two, three = (row["order_id"] for row in (rows[0], rows[-1], rows[len(rows) // 2]))
    table = spark.read.format("delta").load(str(folder)).where("_kind = 'partial'")
    copies = table.where(f"order_id = '{one}'")
    copies = copies.unionByName(table.where(f"order_id = '{two}'").withColumn("order_id", F.lit("never placed")))
    copies.write.format("delta").mode("append").save(str(folder))
    damage.delete(home, "orders", f"_kind = 'partial' and order_id = '{three}'")
    result = reconcile(home, "orders")
    found = {sample.kind: (sample.key["order_id"], sample.txids) for sample in result.comparison.samples}
    middle = rows[len(rows) // 2]["_txid"]
    assert found == {
        Difference.DUPLICATED: (one, (rows[0]["_txid"],)),
        Difference.PHANTOM: ("never placed", (rows[-1]["_txid"],)),
        Difference.MISSING: (three, (middle,)),
    }
    assert counts(result) == {Difference.DUPLICATED: 1, Difference.PHANTOM: 1, Difference.MISSING: 1}
