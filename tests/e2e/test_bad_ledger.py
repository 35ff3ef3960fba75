"""Ledgers that cannot be used, through the command line: one clear error, and the ledger is left as it was."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.e2e.commands import Commands
from tests.e2e.events import plan, write_files

DRAIN = ("drain", "page_views", "--wait", "0")


@pytest.fixture
def ledger(commands: Commands) -> Path:
    """A ledger with something planned in it, and the file it is in."""
    write_files(commands.home, 1)
    plan(commands.home)
    return commands.home.folder / "ledger.db"


def content(ledger: Path) -> list[str]:
    connection = sqlite3.connect(ledger)
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


def test_a_ledger_of_a_newer_version_is_left_alone(commands: Commands, ledger: Path) -> None:
    with sqlite3.connect(ledger) as connection:
        connection.execute("update alembic_version set version_num = '9999'")
    before = content(ledger)
    error = commands.bad(*DRAIN, kind="LedgerNewer")
    assert "9999" in error["what"]
    assert "Upgrade Twinstream" in error["next_step"]
    assert content(ledger) == before


def test_a_locked_ledger_is_named_and_used_once_it_is_free(
    commands: Commands, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twinstream.ledger.database.BUSY_SECONDS", 0.1)
    other = sqlite3.connect(ledger, isolation_level=None)
    other.execute("begin immediate")
    error = commands.bad(*DRAIN, kind="LedgerLocked")
    assert str(ledger) in error["what"]
    other.execute("rollback")
    other.close()
    commands.good("status", "page_views")


def test_a_ledger_on_a_network_file_system_is_refused(
    commands: Commands, ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"server:/export {commands.home.folder} nfs4 rw 0 0\n")
    monkeypatch.setattr("twinstream.filesystems.MOUNTS", str(mounts))
    error = commands.bad(*DRAIN, kind="LedgerError")
    assert "nfs4" in error["what"]
    assert "postgresql://" in error["next_step"]


def test_a_second_host_on_one_sqlite_ledger_is_refused(
    commands: Commands, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(ledger)
    monkeypatch.setenv("TWINSTREAM_HOST_ID", "another")
    error = commands.bad(*DRAIN, kind="LedgerError")
    assert "host" in error["what"]
    assert "PostgreSQL" in error["next_step"]
    assert content(ledger) == before


@pytest.mark.parametrize("command", ["drain", "status", "read", "fold", "clean", "release", "discard", "reinject"])
def test_every_command_says_it_the_same_way(commands: Commands, ledger: Path, command: str, tmp_path: Path) -> None:
    ledger.write_bytes(b"this is no database, however long one looks at it" * 100)
    more = {
        "release": ["--txid", "1", "--reason", "x"],
        "discard": ["--txid", "1", "--reason", "x"],
        "reinject": [str(tmp_path)],
    }
    error = commands.bad(command, "page_views", *more.get(command, []), kind="LedgerError")
    assert str(ledger) in error["what"]
