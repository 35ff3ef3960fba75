"""Repairs can be taken back, never hide a cause, and never run twice at once."""

from __future__ import annotations

import pytest

from tests.e2e.home import Home
from tests.spark.batch import damage
from tests.spark.batch.looks import counts, reconcile, stored
from twinstream.errors import Refused
from twinstream.ledger.runs import Wanted
from twinstream.reconcile.mending import KIND, Repairer
from twinstream.reconcile.result import Difference, Verdict
from twinstream.runtime.progress import Progress


def repairer(home: Home) -> Repairer:
    return Repairer(home.engine(), Progress())


def test_compensating_changes_are_found_repaired_and_the_repair_undone(home: Home) -> None:
    """Two rows changed so that every total stays what it was."""
    honest = home.read("page_views")
    more, less = [row for row in stored(home, "_txid = 1") if row["views"] == 1][:2]
    damage.change(home, "page_views", damage.is_row(more), {"views": "2"})
    damage.change(home, "page_views", damage.is_row(less), {"views": "0"})
    before = reconcile(home)
    assert counts(before) == {Difference.MISMATCHED: 2}
    assert {sample.key["page"] for sample in before.comparison.samples} == {more["page"], less["page"]}
    done = repairer(home).repair("page_views")
    assert done.after is not None
    assert done.after.verdict is Verdict.EQUAL
    assert home.read("page_views") == honest
    repairer(home).undo("page_views")
    assert counts(reconcile(home)) == {Difference.MISMATCHED: 2}
    with pytest.raises(Refused, match="no repair"):
        repairer(home).undo("page_views")
    assert repairer(home).repair("page_views").after is not None, "what was undone can be repaired again"
    assert home.read("page_views") == honest


def test_a_changed_source_is_named_and_a_repair_does_not_hide_it(home: Home) -> None:
    file = sorted(home.data("page_views").glob("*.json"))[0]
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:-5]))
    result = reconcile(home)
    assert result.verdict is Verdict.DIFFERENT
    assert set(counts(result)) == {Difference.SOURCE_CHANGED}
    assert [one.txid for one in result.txids] == [1]
    assert file.name in result.causes[0]
    with pytest.raises(Refused, match="must not hide"):
        repairer(home).repair("page_views")
    assert not [base for base in damage.table_of(home, "page_views").bases() if base.origin == "repair"]


def test_a_changed_definition_is_named_and_a_repair_does_not_hide_it(home: Home) -> None:
    home.change("page_views", "where page is not null", "where page is not null and page <> '/'")
    result = reconcile(home)
    assert result.verdict is Verdict.DIFFERENT
    assert set(counts(result)) == {Difference.DEFINITION_CHANGED}
    assert any("definition is another one" in cause for cause in result.causes)
    assert any("replay" in step for step in result.next_steps)
    with pytest.raises(Refused, match="must not hide"):
        repairer(home).repair("page_views")


def test_a_repair_is_refused_while_another_one_runs(home: Home) -> None:
    engine = home.engine()
    definition = engine.definition("page_views")
    generation = engine.generation(definition)
    wanted = Wanted(generation.id, KIND, generation.frontier, definition.hash, {})
    engine.ledger.runs.start(wanted, "another@host", 60.0)
    for again in (repairer(home).repair, repairer(home).undo):
        with pytest.raises(Refused, match=r"Another repair .* is running \(another@host\)"):
            again("page_views")
