"""The gate: what it refuses is held, alone, until a person releases or discards it; nothing is lost meanwhile."""

from __future__ import annotations

import pytest

from tests.e2e.commands import Commands
from tests.e2e.events import EACH, event, events, write_files, write_json
from tests.e2e.home import Home, assert_true
from tests.faults.processes import Command

DRAIN = ("drain", "page_views", "--batch-records", str(EACH), "--wait", "0")
GATE = """
def not_too_dear(rows):
    dear = rows.where("spend >= 1000000").count()
    return f"{dear} rows spend a million" if dear else None
"""
SIGKILL = -9


def with_gate(home: Home, text: str = GATE, name: str = "not_too_dear") -> None:
    home.change("page_views", "pipeline = Pipeline(", f"{text}\n\npipeline = Pipeline(")
    home.change("page_views", 'record_id="event_id",', f'record_id="event_id",\n    gate={name},')


@pytest.fixture
def dear(commands: Commands) -> Home:
    """Four txids of which the gate does not like the third."""
    home = commands.home
    with_gate(home)
    paths = write_files(home, 4)
    write_json(paths[2], [*events(2)[1:], event(2 * EACH, amount="1000000.00")])
    return home


def states(commands: Commands) -> dict[int, str]:
    """The txids that are not committed."""
    return {entry["txid"]: entry["state"] for entry in commands.good("status", "page_views", "--json").data["open"]}


def test_the_txid_at_fault_is_held_alone_and_commits_when_it_is_released(commands: Commands, dear: Home) -> None:
    error = commands.bad(*DRAIN, kind="GateHeld", code=1)
    assert "Txid 3 is held: 1 rows spend a million" in error["what"]
    assert states(commands).keys() == {3, 4}
    assert states(commands)[3] == "HELD"
    before = dear.read("page_views")
    assert all("1000000" not in row[-1] for row in before)

    commands.bad(*DRAIN, kind="GateHeld", code=1)
    assert dear.read("page_views") == before, "a held txid stays held, and nothing behind it commits"

    refused = commands.bad("release", "page_views", "--txid", "4", "--reason", "why not", kind="Refused", code=1)
    assert "Txid 4 is not held" in refused["what"]
    commands.good("release", "page_views", "--txid", "3", "--reason", "it is a yacht")
    commands.good(*DRAIN)
    assert states(commands) == {}
    assert_true(dear, "page_views", "side")
    journal = commands.good("status", "page_views", "--json").data["journal"]
    assert {"held", "released"} <= {entry["kind"] for entry in journal}
    assert any("it is a yacht" in str(entry) for entry in journal)


def test_a_discarded_txid_commits_empty_and_is_counted_as_discarded(commands: Commands, dear: Home) -> None:
    commands.bad(*DRAIN, kind="GateHeld", code=1)
    commands.good("discard", "page_views", "--txid", "3", "--reason", "a broken till")
    commands.good(*DRAIN)
    assert_true(dear, "page_views", "side")
    counted = dear.accounting("page_views")
    assert [counted[txid]["discarded"] for txid in (1, 2, 3, 4)] == [0, 0, EACH, 0]
    assert all("1000000" not in row[-1] for row in dear.read("page_views"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('def gate(rows):\n    raise KeyError("no such thing")\n', "no such thing"),
        ("def gate(rows):\n    return rows.count() > 0\n", "it returned True"),
        ('def gate(rows):\n    return rows.where("nothing > 1").count() or None\n', "nothing"),
    ],
    ids=["raises", "returns-no-text", "unknown-column"],
)
def test_a_gate_that_gives_no_answer_is_an_error_and_holds_nothing(commands: Commands, text: str, words: str) -> None:
    with_gate(commands.home, text, "gate")
    write_files(commands.home, 1)
    error = commands.bad(*DRAIN, kind="ProcessingFailed", code=1)
    assert "The gate of page_views failed" in error["what"]
    assert words in error["what"]
    assert states(commands) == {1: "PROCESSED"}


@pytest.mark.parametrize("side", ["before", "after"])
def test_killed_while_it_holds_a_txid_the_next_run_holds_it(commands: Commands, dear: Home, side: str) -> None:
    environment = {
        "TWINSTREAM_HOME": str(dear.folder),
        "TWINSTREAM_PIPELINES": str(dear.pipelines),
        "TWINSTREAM_MASTER": "local[1]",
        "TWINSTREAM_FAILPOINT": f"ledger.hold:{side}",
    }
    killed = Command(dear.folder, list(DRAIN), environment).wait(180)
    assert killed.code == SIGKILL, killed.err
    assert states(commands)[3] == ("PROCESSED" if side == "before" else "HELD")
    commands.bad(*DRAIN, kind="GateHeld", code=1)
    commands.good("release", "page_views", "--txid", "3", "--reason", "it is a yacht")
    commands.good(*DRAIN)
    assert_true(dear, "page_views", "side")
