"""Results that are not folded yet are found equal without merging, and looked at by rows where that proves nothing."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.home import Home
from tests.spark.batch import damage
from tests.spark.batch.looks import counts, stored
from tests.spark.batch.test_quick import Notes
from twinstream.operators import Aggregate
from twinstream.reconcile import unmerged
from twinstream.reconcile.reconcile import Reconciler
from twinstream.reconcile.result import Difference, Reconciliation, Verdict


def reconciled(home: Home) -> tuple[Reconciliation, bool]:
    """The answer, and whether it was found without merging."""
    notes = Notes()
    result = Reconciler(home.engine(), notes).reconcile("page_views")
    return result, any("without merging" in text for text in notes.said)


def streamed(folder: Path, spark: Any, *, with_null: bool) -> Home:
    """Four pages in two txids, not folded; with a page of which nothing was ever spent, or not."""
    home = Home.make(folder, spark)
    for txid in (1, 2):
        lines = [
            {
                "event_id": f"{txid}-{n}",
                "page": f"/{n}",
                "amount": n * txid + 0.5,
                "at": f"2026-03-01T00:00:{10 * txid}Z",
            }
            for n in range(3)
        ]
        lines.append({**lines[0], "event_id": f"{txid}-last", "page": "/last", "amount": None if with_null else 0})
        (home.data("page_views") / f"{txid}.json").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    home.drain("page_views", batch_records=4)
    return home


@pytest.fixture(autouse=True)
def _nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unmerged, "SMALL", 0)
    monkeypatch.setattr(unmerged, "ONE_IN", 1)


@pytest.fixture
def plain(tmp_path: Path, spark: Any) -> Home:
    return streamed(tmp_path / "home", spark, with_null=False)


def test_equal_is_said_without_merging_and_with_the_digest_of_the_merged_rows(plain: Home) -> None:
    result, quick = reconciled(plain)
    assert (result.verdict, quick) == (Verdict.EQUAL, True)
    assert result.scanned_in_full_to == 2
    plain.engine().fold("page_views")
    merged, quick = reconciled(plain)
    assert not quick, "a folded result has nothing to merge"
    assert merged.comparison.stream.digest == result.comparison.stream.digest
    assert merged.comparison.stream.rows == result.comparison.stream.rows == 4
    names = lambda one: [(e.suite, e.says, e.success) for e in one.expectations]  # noqa: E731
    assert names(merged) == names(result), "and the same was expected of it"


def test_another_value_is_found_by_its_row(plain: Home) -> None:
    row = stored(plain, "page = '/1' and _txid = 2")[0]
    damage.change(plain, "page_views", damage.is_row(row), {"spend": f"{row['spend'] + Decimal('0.01')}BD"})
    result, quick = reconciled(plain)
    assert (counts(result), quick) == ({Difference.MISMATCHED: 1}, False)


def test_null_is_not_taken_for_nothing_spent(tmp_path: Path, spark: Any) -> None:
    home = streamed(tmp_path / "home", spark, with_null=True)
    result, quick = reconciled(home)
    assert (result.verdict, quick) == (Verdict.EQUAL, False)
    damage.change(home, "page_views", "_kind = 'partial' and page = '/last'", {"spend": "0BD"})
    result, quick = reconciled(home)
    assert (counts(result), quick) == ({Difference.MISMATCHED: 1}, False)


def test_a_row_of_zeros_is_not_taken_for_no_row(plain: Home) -> None:
    row = stored(plain, "page = '/1'")[0]
    damage.add(plain, "page_views", row, page="/nobody", views="0", spend="0")
    result, quick = reconciled(plain)
    assert (counts(result), quick) == ({Difference.PHANTOM: 1}, False)


def test_what_may_not_be_negative_is_looked_at_by_rows(plain: Home) -> None:
    text = (plain.pipelines / "page_views.py").read_text()
    assert "checks=" not in text
    plain.change("page_views", "    batch_records=", '    checks=Checks(non_negative=["spend"]),\n    batch_records=')
    plain.change("page_views", "import A", "import Checks, A")
    result, quick = reconciled(plain)
    assert (result.verdict, quick) == (Verdict.EQUAL, False)


@pytest.mark.parametrize("bug", ["dropDuplicates", "unmerged"])
def test_a_merge_that_is_wrong_is_not_taken_for_right(plain: Home, monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    right = Aggregate.merge
    bugs = {
        "dropDuplicates": lambda self, states: right(self, states.dropDuplicates(["page", "window_start"])),
        "unmerged": lambda self, states: states,
    }
    monkeypatch.setattr(Aggregate, "merge", bugs[bug])
    result, quick = reconciled(plain)
    assert (result.verdict, quick) == (Verdict.DIFFERENT, False)


def test_results_that_are_small_are_merged(plain: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unmerged, "SMALL", 1_000_000)
    result, quick = reconciled(plain)
    assert (result.verdict, quick) == (Verdict.EQUAL, False)
