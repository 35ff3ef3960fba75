"""Backup and restore: the same rows in both kinds of database, whole or not at all."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from sqlalchemy import func, insert, select

from tests.unit.ledger.bench import Bench, Clock, content, files
from twinstream.errors import LedgerError, Refused
from twinstream.ledger import Ledger, Planned
from twinstream.ledger.backup import backup, restore
from twinstream.ledger.runs import Wanted
from twinstream.ledger.schema import batches, claims, generations, pins
from twinstream.transaction import Outcome


def fill(ledger: Ledger) -> Bench:
    """Some of everything that a ledger can hold."""
    bench = Bench(ledger, Clock())
    bench.plan_many(6)
    lease = bench.lease("host pid 7")
    bench.commit(lease, 1, 2)
    bench.ledger.attempts.hold(lease, bench.process(lease, 3, 3), "Grund: „zu viele“ 'nulls'\n\\ \x01")
    bench.ledger.attempts.give_up(lease, bench.start(lease, 4, 4), Outcome.FAILED, "no room")
    bench.start(lease, 5, 6)
    bench.ledger.batches.plan(
        bench.id, 6, [Planned(files("é/日本.json"), exempt=True)], "hash", [("source/é", 2**62)], ("reinjected", "why")
    )
    bench.ledger.generations.note_rate(bench.id, 1.0 / 3.0)
    bench.ledger.pins.remove_later(bench.id, ["old.parquet"], 60)
    wanted = Wanted(bench.id, "recompute", 2, "hash", {"keys": {"page": "é"}}, "batch/1")
    bench.ledger.runs.finish(bench.ledger.runs.start(wanted, "holder", 60), {"rows": 2**60})
    bench.ledger.generations.build("page_views", "new", "{}")
    bench.ledger.generations.open("orders", "hash", "{}")
    with ledger.database.write("pin") as connection:
        connection.execute(insert(pins).values(generation=bench.id, frontier=1, purpose="died", expires_at=2**60))
    return bench


@pytest.fixture
def other_url(ledger_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A ledger in the other kind of database."""
    if ledger_url.startswith("sqlite"):
        url: str = request.getfixturevalue("postgres_database")
        return url
    return f"sqlite:///{tmp_path / 'other.db'}"


def test_a_backup_moves_a_ledger_to_the_other_database_and_back(ledger: Ledger, other_url: str, tmp_path: Path) -> None:
    fill(ledger)
    rows = backup(ledger.database, tmp_path / "there.jsonl")
    other = Ledger.open(other_url)
    assert restore(other.database, tmp_path / "there.jsonl") == rows
    before = content(ledger.database)
    assert content(other.database) == before
    assert sum(map(len, before.values())) == rows
    assert all(before.values()), "the test fills every table"

    backup(other.database, tmp_path / "back.jsonl")
    assert (tmp_path / "back.jsonl").read_bytes() == (tmp_path / "there.jsonl").read_bytes()
    last = Ledger.open(f"sqlite:///{tmp_path / 'last.db'}")
    restore(last.database, tmp_path / "back.jsonl")
    assert content(last.database) == before
    last.close()
    other.close()


def test_a_restored_ledger_goes_on_where_the_old_one_was(ledger: Ledger, other_url: str, tmp_path: Path) -> None:
    bench = fill(ledger)
    backup(ledger.database, tmp_path / "file")
    clock = Clock()
    other = Ledger.open(other_url, clock=clock)
    restore(other.database, tmp_path / "file")
    clock.now = 2**53
    again = Bench(other, clock)
    assert again.id == bench.id
    lease = again.lease("new runner")
    assert lease.epoch == 2
    assert again.plan("later.json") == range(8, 9)
    other.batches.release(again.id, 3, "fine")
    attempt = again.start(lease, 4, 8)
    assert attempt.id > max(int(str(a["id"])) for a in ledger.attempts.newest(bench.id)), "ids are not used twice"
    assert other.generations.open("third", "hash", "{}").id == 4
    other.close()


def test_more_rows_than_fit_in_one_go_are_restored(tmp_path: Path, ledger: Ledger) -> None:
    generation = ledger.generations.open("page_views", "hash", "{}").id
    ledger.batches.plan(generation, 0, [Planned(files(f"{n}.json")) for n in range(5_001)], "hash")
    backup(ledger.database, tmp_path / "file")
    other = Ledger.open(f"sqlite:///{tmp_path / 'other.db'}")
    restore(other.database, tmp_path / "file")
    assert content(other.database) == content(ledger.database)
    other.close()


def test_a_backup_is_one_consistent_view(ledger: Ledger, tmp_path: Path) -> None:
    """What is planned while the backup reads is in it as a whole or not at all."""
    bench = Bench.on(ledger)
    with ledger.database.read() as connection:
        before = connection.execute(select(func.max(generations.c.last_txid))).scalar_one()
        planner = threading.Thread(target=bench.plan_many, args=(3,))
        planner.start()
        planner.join()
        assert connection.execute(select(func.count()).select_from(batches)).scalar_one() == before
        assert connection.execute(select(func.count()).select_from(claims)).scalar_one() == before
    assert bench.generation.last_txid == before + 3


def test_reading_never_writes(ledger: Ledger) -> None:
    with ledger.database.read() as connection:
        values = {"pipeline": "p", "number": 1, "uid": "u", "state": "s", "definition_hash": "h", "definition": ""}
        if ledger.database.dialect == "postgresql":
            with pytest.raises(Exception, match="read-only"):
                connection.execute(insert(generations).values(created_at=0, **values))


def test_an_empty_ledger_is_backed_up_and_restored(ledger: Ledger, other_url: str, tmp_path: Path) -> None:
    assert backup(ledger.database, tmp_path / "file") == 0
    other = Ledger.open(other_url)
    assert restore(other.database, tmp_path / "file") == 0
    assert other.generations.open("page_views", "hash", "{}").id == 1
    other.close()


def test_a_backup_never_overwrites_a_file(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(Refused, match="exists already"):
        backup(ledger.database, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "precious"


def test_a_backup_into_a_folder_that_is_not_there_is_a_clear_error(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be written: No such file or directory"):
        backup(ledger.database, tmp_path / "nowhere" / "file")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_nothing_is_restored_over_a_ledger_in_use(ledger: Ledger, tmp_path: Path) -> None:
    fill(ledger)
    backup(ledger.database, tmp_path / "file")
    before = content(ledger.database)
    with pytest.raises(Refused, match="not empty"):
        restore(ledger.database, tmp_path / "file")
    assert content(ledger.database) == before


@pytest.mark.parametrize("damage", ["cut", "cut at a line", "one more", "one less", "no rows", "letters", "shape"])
def test_a_damaged_backup_restores_nothing(tmp_path: Path, damage: str) -> None:
    ledger = Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}")
    fill(ledger)
    backup(ledger.database, tmp_path / "file")
    ledger.close()
    text = (tmp_path / "file").read_text()
    lines = text.splitlines(keepends=True)
    broken = {
        "cut": text[:-30],
        "cut at a line": "".join(lines[:-1]),
        "one more": "".join([*lines[:-1], lines[-2].replace('"id": ', '"id": 9'), lines[-1]]),
        "one less": "".join([*lines[:-2], lines[-1]]),
        "no rows": "".join([lines[0], lines[-1]]),
        "letters": "".join([*lines[:3], "{oops\n", *lines[3:]]),
        "shape": "".join([lines[0], '["generations", {"id": 1}]\n', '{"rows": 1}\n']),
    }[damage]
    (tmp_path / "file").write_text(broken)
    other = Ledger.open(f"sqlite:///{tmp_path / 'other.db'}")
    with pytest.raises(LedgerError, match="damaged"):
        restore(other.database, tmp_path / "file")
    assert not any(content(other.database).values())
    other.close()


def test_a_backup_with_rows_that_refer_to_nothing_is_damaged(ledger: Ledger, tmp_path: Path) -> None:
    lines = [
        {"twinstream": "ledger", "version": "0002"},
        ["folders", {"generation": 5, "folder": "source", "modified": 1}],
        {"rows": 1},
    ]
    (tmp_path / "file").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(LedgerError, match="damaged"):
        restore(ledger.database, tmp_path / "file")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"name": "something else"}\n', "not a ledger backup"),
        ("[1, 2]\n", "not a ledger backup"),
        ("hello\n", "damaged"),
        ("", "damaged"),
        ('{"twinstream": "ledger", "version": "9999"}\n{"rows": 0}\n', "version 9999, this Twinstream needs 0002"),
    ],
)
def test_a_file_that_is_no_backup_of_this_version_is_refused(
    ledger: Ledger, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(LedgerError, match=message):
        restore(ledger.database, tmp_path / "file")


def test_a_backup_that_is_not_there_is_a_clear_error(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be read: No such file"):
        restore(ledger.database, tmp_path / "nothing")
