"""A quick reconciliation reads only what is new, says so, and reads everything where that is not enough."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.home import Home
from tests.spark.batch import damage
from tests.spark.batch.looks import counts, stored
from twinstream.batch.layer import BatchLayer
from twinstream.reconcile.certificate import load
from twinstream.reconcile.mending import Repairer
from twinstream.reconcile.reconcile import Reconciler
from twinstream.reconcile.result import Difference, Reconciliation, Verdict
from twinstream.runtime.progress import Progress


class Notes(Progress):
    """Keeps what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


def quick(home: Home, name: str = "page_views") -> tuple[Reconciliation, str]:
    notes = Notes()
    result = Reconciler(home.engine(), notes).reconcile(name, quick=True)
    return result, next(text for text in notes.said if text.startswith("comparing"))


def more(home: Home, seed: int, name: str = "page_views") -> None:
    home.generate(name, 100, events_per_file=50, seed=seed, late=0.1, rate=0.5)
    home.drain(name, batch_records=50)


@pytest.mark.parametrize("name", ["page_views", "orders"])
def test_only_what_is_new_is_read_and_the_result_says_so(tmp_path: Path, spark: Any, name: str) -> None:
    home = Home.make(tmp_path / "home", spark)
    more(home, 1, name)
    first, said = quick(home, name)
    assert "no earlier reconciliation" in said
    assert first.scanned_in_full_to == first.frontier
    for seed in (2, 3):
        more(home, seed, name)
        result, said = quick(home, name)
        assert said.startswith("comparing txids")
        assert result.verdict is Verdict.EQUAL
        assert (result.scanned_in_full_at, result.scanned_in_full_to) == (first.started_at, first.frontier)
    certificate = load(home.folder, name, damage.table_of(home, name).folder.name, None)
    assert certificate["scanned_in_full_to"] == first.frontier < certificate["frontier"]
    full = Reconciler(home.engine(), Progress()).reconcile(name)
    assert full.comparison.stream.digest == result.comparison.stream.digest, (
        "the digest that was claimed is the right one"
    )


def test_damage_to_what_is_new_is_found(home: Home) -> None:
    quick(home)
    frontier = len(home.ranges("page_views"))
    more(home, 9)
    row = stored(home, f"_txid = {frontier + 1}")[0]
    damage.change(home, "page_views", damage.is_row(row), {"views": str(row["views"] + 1)})
    result, _ = quick(home)
    assert counts(result) == {Difference.MISMATCHED: 1}
    assert [one.txid for one in result.txids] == [frontier + 1]
    _, said = quick(home)
    assert "differed" in said


def test_after_a_repair_everything_is_read(home: Home) -> None:
    quick(home)
    row = stored(home, "_txid = 1")[0]
    damage.change(home, "page_views", damage.is_row(row), {"views": str(row["views"] + 1)})
    unseen, _ = quick(home)
    assert unseen.verdict is Verdict.EQUAL, "what is not read is not seen"
    assert unseen.scanned_in_full_at is not None
    assert unseen.scanned_in_full_at < unseen.started_at, "and the result says since when"
    repairer = Repairer(home.engine(), Progress())
    assert repairer.repair("page_views").after is not None
    _, said = quick(home)
    assert said.startswith("comparing txids"), "the proof after the repair read everything"
    repairer.undo("page_views")
    result, said = quick(home)
    assert "repaired since" in said
    assert counts(result) == {Difference.MISMATCHED: 1}


def test_without_the_batch_that_it_went_by_everything_is_read(home: Home) -> None:
    quick(home)
    run = BatchLayer(home.engine()).newest("page_views")
    assert run is not None
    assert run.folder is not None
    (home.folder / run.folder / "prints.json").write_text("{")
    more(home, 9)
    result, said = quick(home)
    assert "is gone" in said
    assert result.verdict is Verdict.EQUAL
