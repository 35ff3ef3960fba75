"""Real processes that are stopped past their lease, killed at random, and killed in the heartbeat."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import select

from tests.faults.processes import Command
from tests.faults.stage import DRAIN, SIGKILL, Prepared, Stage
from twinstream.ledger.schema import attempts
from twinstream.sinks.delta import DeltaStore
from twinstream.sinks.snapshot import read_notes
from twinstream.transaction import Outcome

ONE_GROUP = {"TWINSTREAM_GROUPS_IN_FLIGHT": "1"}
"""One group in flight: another thread could be stopped within a transaction, and SQLite would stay locked.

The heartbeat still can: see `begin_and_stop`.
"""
LEASE_SECONDS = [4 + 0.7 * number for number in range(10)]
FENCED = 1
PLACES = ["sink.fence:before", "ledger.processed:before", "sink.commit:before"]


def wait_until_stopped(command: Command) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        state = Path(f"/proc/{command.pid}/stat").read_text().rpartition(")")[2].split()[0]
        if state == "T":
            return
        assert command.process.is_alive(), command.wait().err
        time.sleep(0.05)
    raise TimeoutError("it never stopped")


def begin_and_stop(prepared: Prepared, folder: Path, point: str) -> tuple[Stage, Command]:
    """A drain that is stopped at a failpoint, and at rest: its heartbeat holds no transaction open.

    Every try has another lease, and so another heartbeat: with the same one the failpoint may be met at its beat again.
    """
    for seconds in LEASE_SECONDS:
        stage = prepared.stage("start", folder / f"home{seconds:g}")
        lease = {"TWINSTREAM_LEASE_SECONDS": str(seconds), "TWINSTREAM_FAILPOINT": f"{point}!stop"}
        zombie = stage.begin(DRAIN, ONE_GROUP | lease)
        wait_until_stopped(zombie)
        if not is_locked(stage.home.folder / "ledger.db"):
            return stage, zombie
        os.kill(zombie.pid, signal.SIGKILL)
        zombie.wait()
    raise TimeoutError("its heartbeat was always stopped within a transaction")


def is_locked(ledger: Path) -> bool:
    """Whether somebody has a transaction open that writes."""
    with closing(sqlite3.connect(ledger, timeout=0.5, isolation_level=None)) as connection:
        try:
            connection.execute("begin immediate")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            return True
        connection.execute("rollback")
        return False


def store_of(stage: Stage) -> DeltaStore:
    [folder] = stage.home.folder.glob("tables/page_views/_twinstream/g*")
    return DeltaStore(folder, folder.name, {})


def live_files(stage: Stage) -> dict[str, int]:
    """The files that the table names, as they are on disk."""
    store = store_of(stage)
    return {file.path: (store.folder / file.path).stat().st_size for file in store.snapshot().all_files()}


def assert_committed_once(stage: Stage) -> None:
    """One manifest and one COMMITTED attempt per txid."""
    store = store_of(stage)
    snapshot = store.snapshot()
    notes = [row["_txid"] for file in snapshot.files["manifest"] for row in read_notes(store.folder / file.path)]
    assert sorted(notes) == list(range(1, snapshot.state.txid + 1))
    engine = stage.home.engine()
    generation = engine.generation(engine.definition("page_views"))
    with engine.ledger.database.read() as connection:
        found = connection.execute(select(attempts).where(attempts.c.outcome == Outcome.COMMITTED)).all()
    engine.close()
    assert generation.frontier == snapshot.state.txid
    counted = Counter(txid for row in found for txid in range(row.first_txid, row.last_txid + 1))
    assert counted == dict.fromkeys(range(1, generation.frontier + 1), 1)


@pytest.mark.parametrize("point", PLACES)
def test_a_zombie_commits_nothing_and_deletes_nothing(point: str, prepared: Prepared, tmp_path: Path) -> None:
    stage, zombie = begin_and_stop(prepared, tmp_path, point)
    try:
        stage.good([*DRAIN, "--wait", "60"])
        before, version = live_files(stage), store_of(stage).snapshot().version
    finally:
        os.kill(zombie.pid, signal.SIGCONT)
    ended = zombie.wait(120)
    assert ended.code == FENCED, ended.err
    assert "Taken over" in ended.err
    assert (live_files(stage), store_of(stage).snapshot().version) == (before, version)
    assert_committed_once(stage)
    stage.assert_true()


@pytest.mark.timeout(900)
def test_three_drains_killed_at_random_until_all_is_done(prepared: Prepared, tmp_path: Path, seed: int) -> None:
    stage = prepared.stage("start", tmp_path / "home")
    chance = random.Random(seed)
    arguments = ["drain", "page_views", "--batch-records", "300", "--group", "1", "--wait", "120"]
    running: list[tuple[Command, float]] = []
    kills = done = 0
    while done < 3:
        while len(running) + done < 3:
            patience = time.monotonic() + chance.uniform(1, 12) if kills < 8 else float("inf")
            running.append((stage.begin(arguments), patience))
        for command, until in list(running):
            if command.process.is_alive() and time.monotonic() > until:
                os.kill(command.pid, signal.SIGKILL)
                kills += 1
            if not command.process.is_alive() or time.monotonic() > until:
                running.remove((command, until))
                ran = command.wait()
                assert ran.code in (0, FENCED, SIGKILL), ran.err
                done += ran.code == 0
        time.sleep(0.05)
    assert kills > 0
    assert_committed_once(stage)
    status = stage.good(["status", "page_views", "--json"]).json()
    epochs = [attempt["epoch"] for attempt in status["attempts"]]
    assert epochs == sorted(epochs, reverse=True)
    assert status["epoch"] >= max(epochs) >= 1
    assert status["backlog"]["txids"] == 0
    stage.assert_true()


@pytest.mark.parametrize("side", ["before", "after"])
def test_killed_in_the_heartbeat_the_next_one_goes_on(prepared: Prepared, tmp_path: Path, side: str) -> None:
    stage = prepared.stage("start", tmp_path / "home")
    stage.killed(DRAIN, f"ledger.renew:{side}", {"TWINSTREAM_LEASE_SECONDS": "0.4"})
    stage.good(DRAIN)
    assert_committed_once(stage)
    stage.assert_true()
