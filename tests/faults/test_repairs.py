"""A repair, or its undoing, that is killed at any durable step is finished by the next one; readers never see a mix."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.stage import Prepared

REPAIR = ["repair", "page_views"]
UNDO = ["repair", "page_views", "--undo"]


@pytest.mark.parametrize(
    "point", ["stage.base:after", "sink.base:after", "publish.commit:after", "ledger.run-done:before"]
)
def test_a_repair_that_is_killed_is_finished_by_the_next_one(point: str, prepared: Prepared, tmp_path: Path) -> None:
    stage = prepared.stage("damaged", tmp_path / "home")
    stage.killed(REPAIR, point)
    stage.good(REPAIR)
    stage.assert_true()


@pytest.mark.parametrize(
    "point", ["ledger.run-note:after", "sink.base:before", "sink.base:after", "ledger.run-done:before"]
)
def test_an_undo_that_is_killed_is_finished_by_the_next_one(point: str, prepared: Prepared, tmp_path: Path) -> None:
    stage = prepared.stage("repaired", tmp_path / "home")
    stage.killed(UNDO, point)
    stage.good(UNDO)
    again = stage.run(UNDO)
    assert (again.code, "no repair" in again.err) == (1, True), "it is undone once, not twice"
    found = stage.run(["read", "page_views"])
    assert "removed or changed by something else" in found.err, "the damage is back, and nobody takes it for the result"
