"""Is what was streamed what should have been? Equal when it is, and every damage found, named and mended."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.home import Home
from tests.spark.batch import damage
from twinstream.errors import LedgerSinkMismatch
from twinstream.reconcile.certificate import load
from twinstream.reconcile.mending import Repairer
from twinstream.reconcile.reconcile import Reconciler
from twinstream.reconcile.result import Difference, Reconciliation, Verdict
from twinstream.reconcile.scrub import scrub
from twinstream.reconcile.verify import verify
from twinstream.runtime.progress import Progress

FOUND = (Difference.MISSING, Difference.PHANTOM, Difference.DUPLICATED, Difference.MISMATCHED)


@pytest.fixture(scope="module")
def drained(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Home:
    """A stream with late and broken records, made once."""
    made = Home.make(tmp_path_factory.mktemp("reconcile") / "home", spark)
    made.generate("page_views", 600, events_per_file=100, late=0.1, poison=0.02, rate=0.5)
    made.drain("page_views", batch_records=200)
    return made


@pytest.fixture
def home(drained: Home, tmp_path: Path) -> Home:
    """A copy of it to be damaged."""
    shutil.copytree(drained.folder, tmp_path / "home")
    return Home(tmp_path / "home", drained.spark, tmp_path / "home" / "pipelines")


def reconcile(home: Home, **options: Any) -> Reconciliation:
    return Reconciler(home.engine(), Progress()).reconcile("page_views", **options)


def counts(result: Reconciliation) -> dict[Difference, int]:
    return {kind: result.comparison.counts[kind] for kind in FOUND if result.comparison.counts[kind]}


def stored(home: Home, where: str) -> list[Any]:
    folder = damage.table_of(home, "page_views").folder
    rows = home.spark.read.format("delta").load(str(folder)).where(f"_kind = 'partial' and {where}")
    return list(rows.orderBy("_txid", "page", "window_start").collect())


def test_an_honest_stream_is_equal_and_its_certificate_verifies(home: Home) -> None:
    result = reconcile(home)
    assert result.verdict is Verdict.EQUAL, result
    assert result.comparison.stream.rows == result.comparison.batch.rows > 0
    assert result.late.records > 0
    assert all(one.success for one in result.expectations if one.severity != "info")
    assert (home.folder / "reports" / "page_views" / f"{result.id}.html").is_file()
    checks = verify(home.engine(), load(home.folder, "page_views", None))
    assert [check for check in checks if check.holds is not True] == []
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
