"""Killed in the steps that look after the ledger: each is done as a whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.stage import DRAIN, Prepared, Stage
from tests.unit.ledger.bench import Bench, Clock, content
from twinstream import failpoints
from twinstream.ledger import Ledger
from twinstream.ledger.runs import Wanted
from twinstream.transaction import State

BACKUP = ["ledger", "backup", "{home}/backup.jsonl"]
RESTORE = ["ledger", "restore", "{home}/backup.jsonl"]
REBUILD = ["ledger", "rebuild", "page_views"]
JOURNAL = "ledger.journal"
SIDES = pytest.mark.parametrize("side", ["before", "after"])


class Killed(BaseException):
    """The process is gone."""


@pytest.fixture
def stage(prepared: Prepared, tmp_path: Path) -> Stage:
    return prepared.stage("drained", tmp_path / "home")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    clock = Clock()
    ledger = Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}", clock=clock)
    yield Bench(ledger, clock)
    ledger.close()


def everything(file: Path) -> dict[str, list[tuple[object, ...]]]:
    """All that is in a ledger."""
    ledger = Ledger.open(f"sqlite:///{file}")
    try:
        return content(ledger.database)
    finally:
        ledger.close()


def elsewhere(stage: Stage) -> dict[str, str]:
    return {"TWINSTREAM_LEDGER_URL": f"sqlite:///{stage.home.folder / 'other.db'}"}


@SIDES
def test_a_backup_is_whole_or_not_there(stage: Stage, side: str) -> None:
    before = everything(stage.home.folder / "ledger.db")
    stage.killed(BACKUP, f"ledger.backup:{side}")
    assert (stage.home.folder / "backup.jsonl").exists() == (side == "after")
    if side == "before":
        stage.good(BACKUP)
    assert stage.run(RESTORE, environment=elsewhere(stage)).code == 0
    assert everything(stage.home.folder / "other.db") == before == everything(stage.home.folder / "ledger.db")


@SIDES
def test_a_ledger_is_restored_as_a_whole_or_not_at_all(stage: Stage, side: str) -> None:
    before = everything(stage.home.folder / "ledger.db")
    stage.good(BACKUP)
    stage.killed(RESTORE, f"ledger.restore:{side}", elsewhere(stage))
    if side == "before":
        assert not any(everything(stage.home.folder / "other.db").values())
        assert stage.run(RESTORE, environment=elsewhere(stage)).code == 0
    assert everything(stage.home.folder / "other.db") == before


@SIDES
def test_a_rebuild_is_done_as_a_whole_or_not_at_all(stage: Stage, side: str) -> None:
    frontier = stage.good(["status", "page_views", "--json"]).json()["frontier"]
    for file in stage.home.folder.glob("ledger.db*"):
        file.unlink()
    stage.killed(REBUILD, f"ledger.rebuild:{side}")
    stage.good(REBUILD)
    status = stage.good(["status", "page_views", "--json"]).json()
    assert (status["frontier"], status["planned"], status["open"]) == (frontier, frontier, [])
    assert stage.good([*DRAIN, "--json"]).json()["txids"] == 0
    engine = stage.home.engine()
    found = engine.ledger.batches.get(1, 1, frontier)
    engine.close()
    assert [batch.state for batch in found] == [State.COMMITTED] * frontier


@pytest.mark.parametrize(
    "point", ["ledger.pin:before", "ledger.pin:after", "ledger.unpin:before", "ledger.unpin:after"]
)
def test_a_pin_whose_reader_is_killed_runs_out(bench: Bench, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = False

    def hit(name: str) -> None:
        nonlocal dead
        dead = dead or name == point
        if dead:
            raise Killed(name)

    monkeypatch.setattr(failpoints, "hit", hit)
    with pytest.raises(Killed), bench.ledger.pins.hold(bench.id, 3, "a reader", seconds=60):
        """Reading."""
    stays = point in ("ledger.pin:after", "ledger.unpin:before")
    assert bench.ledger.pins.lowest(bench.id) == (3 if stays else None)
    bench.clock.passes(61)
    assert bench.ledger.pins.lowest(bench.id) is None


@pytest.mark.parametrize("step", ["ledger.run-failed", "ledger.run-renew"])
@SIDES
def test_a_run_that_is_killed_is_taken_over(
    bench: Bench, step: str, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = bench.ledger.runs
    wanted = Wanted(bench.id, "recompute", 3, "hash", {}, "batch/a")
    run = runs.start(wanted, "one", 60)
    runs.note(run, {"chunks": ["1-2"]})

    def hit(name: str) -> None:
        if name == f"{step}:{side}":
            raise Killed(name)

    call = (lambda: runs.fail(run, "no room")) if step == "ledger.run-failed" else (lambda: runs.renew(run, 60))
    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "hit", hit)
        with pytest.raises(Killed):
            call()
    bench.clock.passes(121)
    again = runs.start(wanted, "two", 60)
    assert (again.id, again.folder, again.result) == (run.id, "batch/a", {"chunks": ["1-2"]})


@SIDES
def test_what_a_person_asked_for_is_noted_or_it_is_not(
    bench: Bench, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hit(name: str) -> None:
        if name == f"{JOURNAL}:{side}":
            raise Killed(name)

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "hit", hit)
        with pytest.raises(Killed):
            bench.ledger.journal.add(bench.id, "paused", "a holiday")
    found = bench.ledger.journal.last(bench.id, ("paused",))
    assert (found is not None) == (side == "after")
