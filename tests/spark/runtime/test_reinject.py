"""Reinjecting: dead letters and late records, mended by a person, come back as a txid of their own, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.commands import Commands
from tests.e2e.events import EACH, event, events, write_files, write_json
from tests.e2e.home import assert_true
from tests.faults.processes import Command

DRAIN = ("drain", "page_views", "--batch-records", str(EACH), "--wait", "0")
SIGKILL = -9


@pytest.fixture
def drained(commands: Commands) -> Commands:
    """Three txids; the first has a dead letter, the last a late record."""
    paths = write_files(commands.home)
    write_json(paths[0], [*events(0), event(900, amount="a lot", at="2026-01-01T00:01:00Z")])
    write_json(paths[2], [*events(2), event(901, page="/late", at="2026-01-01T00:00:00Z")])
    commands.good("drain", "page_views", "--batch-records", str(EACH + 1), "--wait", "0")
    assert_true(commands.home, "page_views", "side")
    return commands


def test_mended_dead_letters_and_late_records_count_once(drained: Commands, tmp_path: Path) -> None:
    home = drained.home
    dead, late = tmp_path / "dead.json", tmp_path / "late.json"
    assert drained.good("dead", "page_views", "--export", str(dead), "--json").data["records"] == 1
    assert drained.good("late", "page_views", "--export", str(late), "--json").data["records"] == 1
    dead.write_text(dead.read_text().replace("a lot", "7.50"))
    assert drained.good("reinject", "page_views", str(dead), "--json").data == {
        "pipeline": "page_views",
        "txid": 4,
        "records": 1,
    }
    drained.good("reinject", "page_views", str(late), "--reason", "the phone was offline")
    again = drained.bad("reinject", "page_views", str(late), kind="Refused", code=1)
    assert "reinjected before, as txid 5" in again["what"]
    drained.good(*DRAIN)

    assert_true(home, "page_views", "side")
    counted = home.accounting("page_views")
    assert [counted[txid]["emitted"] for txid in (4, 5)] == [1, 1]
    assert ("/late", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", "1", "901.25") in home.read("page_views")
    assert drained.bad("reinject", "page_views", str(dead), kind="Refused", code=1)["what"].endswith("as txid 4.")


def test_late_records_stay_late_where_that_is_asked_for(drained: Commands, tmp_path: Path) -> None:
    late = tmp_path / "late.json"
    drained.good("late", "page_views", "--export", str(late))
    drained.good("reinject", "page_views", str(late), "--no-count-late")
    drained.good(*DRAIN)
    assert_true(drained.home, "page_views", "side")
    assert drained.home.accounting("page_views")[4]["late"] == 1


def test_what_cannot_be_brought_back_is_refused(drained: Commands, tmp_path: Path) -> None:
    error = drained.bad("reinject", "page_views", str(tmp_path / "nothing.json"), kind="Refused", code=1)
    assert "nothing.json" in error["what"]
    (tmp_path / "mended.txt").write_text("{}\n")
    error = drained.bad("reinject", "page_views", str(tmp_path / "mended.txt"), kind="Refused", code=1)
    assert "mended.txt" in error["what"]
    assert drained.good("status", "page_views", "--json").data["planned"] == 3
    existing = drained.bad("dead", "page_views", "--export", str(tmp_path / "mended.txt"), kind="Refused", code=1)
    assert "exists already" in existing["what"]


def test_killed_while_the_file_is_copied_it_comes_back_once(drained: Commands, tmp_path: Path) -> None:
    home = drained.home
    mended = tmp_path / "mended.json"
    write_json(mended, [event(902)])
    environment = {"TWINSTREAM_HOME": str(home.folder), "TWINSTREAM_PIPELINES": str(home.pipelines)}
    for side in ("before", "after"):
        failpoint = {"TWINSTREAM_FAILPOINT": f"reinject.copy:{side}"}
        killed = Command(home.folder, ["reinject", "page_views", str(mended)], environment | failpoint).wait(60)
        assert killed.code == SIGKILL, killed.err
        assert drained.good("status", "page_views", "--json").data["planned"] == 3
    drained.good("reinject", "page_views", str(mended))
    drained.good(*DRAIN)
    assert_true(home, "page_views", "side")
    assert sum(counted["emitted"] for counted in home.accounting("page_views").values()) == 3 * EACH + 1
