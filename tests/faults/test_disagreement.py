"""When ledger and sink disagree: it is noticed and named, nothing is touched, and the way on ends at the truth."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.home import ROOT, Home, assert_true
from tests.faults.model.world import copy_ledger
from tests.unit.ledger.bench import content
from twinstream import failpoints
from twinstream.engine import DrainRequest
from twinstream.errors import LedgerSinkMismatch
from twinstream.sinks.base import SEE_PROTOCOL
from twinstream.sinks.delta import DeltaStore
from twinstream.transaction import Outcome

NAME = "page_views"


@pytest.fixture(scope="module")
def drained(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Home:
    """A home with three txids, of which the ledger has a backup that knows only the first."""
    home = Home.make(tmp_path_factory.mktemp("disagreement") / "home", spark)
    home.generate(NAME, 20, events_per_file=20, poison=0.05, rate=0.02)
    home.drain(NAME, batch_records=20)
    copy_ledger(home.folder / "ledger.db", home.folder / "old.db")
    home.generate(NAME, 40, events_per_file=20, late=0.1, rate=0.02, seed=9)
    home.drain(NAME, batch_records=20, group=1)
    return home


@pytest.fixture
def home(drained: Home, tmp_path: Path) -> Home:
    folder = tmp_path / "home"
    shutil.copytree(drained.folder, folder)
    return Home(folder, drained.spark, folder / "pipelines")


def more(home: Home) -> None:
    """Something new to drain."""
    home.generate(NAME, 20, events_per_file=20, rate=0.02, seed=8)


def table(home: Home) -> DeltaStore:
    folder = max(home.folder.glob(f"tables/{NAME}/_twinstream/g*"))
    return DeltaStore(folder, folder.name, {})


def everything(home: Home) -> tuple[Mapping[str, int], object]:
    """All files of the sink, and all that is in the ledger."""
    files = {str(path): path.stat().st_mtime_ns for path in (home.folder / "tables").rglob("*") if path.is_file()}
    engine = home.engine()
    try:
        return files, content(engine.ledger.database)
    finally:
        engine.close()


def commands(home: Home) -> dict[str, Callable[[], object]]:
    return {
        "drain": lambda: home.drain(NAME, batch_records=20),
        "read": lambda: home.read(NAME),
        "fold": lambda: home.engine().fold(NAME),
        "clean": lambda: home.engine().clean(NAME, 0, 0),
    }


def refused(home: Home, says: str, *names: str) -> None:
    """Every command stops with the same words, which docs/protocol.md has too, and touches nothing."""
    assert says in (ROOT / "docs" / "protocol.md").read_text().replace("\n", " ")
    before = everything(home)
    for name in names:
        with pytest.raises(LedgerSinkMismatch) as raised:
            commands(home)[name]()
        assert says in raised.value.what, name
        assert raised.value.next_step == SEE_PROTOCOL or "replay" in raised.value.next_step
        assert everything(home) == before, name


def replayed(home: Home) -> None:
    engine = home.engine()
    engine.build(NAME, DrainRequest(batch_records=20, wait_seconds=0))
    engine.promote(NAME, unproven=True)
    engine.close()
    assert_true(home, NAME, "side")


def rebuilt(home: Home) -> None:
    engine = home.engine()
    engine.rebuild(NAME)
    engine.close()
    home.drain(NAME, batch_records=20)
    assert_true(home, NAME, "side")


def test_a_ledger_restored_from_an_old_backup(home: Home) -> None:
    copy_ledger(home.folder / "old.db", home.folder / "ledger.db")
    more(home)
    refused(home, "the ledger is older than the sink (restored from a backup?)", "drain", "read", "fold", "clean")
    rebuilt(home)
    assert len(home.ranges(NAME)) == 4


def test_a_ledger_restored_that_plans_again_before_it_is_rebuilt(home: Home) -> None:
    copy_ledger(home.folder / "old.db", home.folder / "ledger.db")
    more(home)
    engine = home.engine()
    definition = engine.definition(NAME)
    engine.plan(definition, engine.generation(definition), batch_records=40)
    for holder in ("one", "two"):
        engine.ledger.leases.acquire(1, holder, 0)
    engine.close()
    refused(home, "with another range than the ledger planned", "drain", "clean")
    rebuilt(home)


def test_a_ledger_that_is_lost(home: Home) -> None:
    for file in home.folder.glob("ledger.db*"):
        file.unlink()
    more(home)
    refused(home, "which this ledger does not know (a new or wrong TWINSTREAM_LEDGER_URL?)", "drain")
    rebuilt(home)
    assert len(home.ranges(NAME)) == 4


@pytest.mark.parametrize("new_data", [True, False])
def test_a_sink_whose_newest_log_entries_are_gone(home: Home, new_data: bool) -> None:
    log = table(home).folder / "_delta_log"
    sorted(log.glob("*.json"))[-1].unlink()
    if new_data:
        more(home)
    refused(home, "the sink was rolled back or replaced", "drain", "read", "fold", "clean")
    if new_data:
        replayed(home)


def test_a_sink_that_was_restored_to_an_older_version(home: Home) -> None:
    """Delta's RESTORE keeps the transactions: the table says that it has a txid whose rows are gone."""
    from deltalake import DeltaTable

    store = table(home)
    DeltaTable(str(store.folder)).restore(store.snapshot().version - 1)
    assert table(home).state().txid == 3
    more(home)
    refused(home, "The sink has lost manifests between txids", "drain", "read", "fold", "clean")
    replayed(home)


def test_a_sink_that_is_gone(home: Home) -> None:
    folder = table(home).folder
    shutil.rmtree(folder)
    more(home)
    refused(home, "The table of generation", "drain", "read", "fold", "clean")
    assert not folder.exists()
    replayed(home)


def test_a_file_of_the_result_that_another_tool_vacuumed(home: Home) -> None:
    store = table(home)
    gone = store.folder / store.snapshot().files["partial"][0].path
    gone.unlink()
    refused(home, "belongs to the result but was removed or changed by something else", "read", "fold")
    with pytest.raises(LedgerSinkMismatch, match=gone.name):
        home.read(NAME)
    more(home)
    with pytest.raises(LedgerSinkMismatch, match=gone.name):
        home.drain(NAME, batch_records=20)
    replayed(home)


def test_a_staged_file_that_is_gone_before_its_commit_is_made_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    more(home)
    with monkeypatch.context() as patch:
        patch.setenv(failpoints.VARIABLE, "sink.commit:before!error")
        failpoints._passes.clear()
        with pytest.raises(failpoints.Failed):
            home.drain(NAME, batch_records=20)
    engine = home.engine()
    [attempt] = engine.ledger.attempts.waiting(1)
    assert attempt.outcome == Outcome.PROCESSED
    assert attempt.staged is not None
    (table(home).folder / attempt.staged.files[0].path).unlink()
    home.drain(NAME, batch_records=20)
    tried = [found["outcome"] for found in engine.ledger.attempts.of_txid(1, 4)]
    engine.close()
    assert tried == [Outcome.FAILED, Outcome.COMMITTED]
    assert_true(home, NAME, "side")
