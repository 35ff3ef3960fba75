"""Every test of the ledger runs on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.ledger.bench import Bench, Clock
from twinstream.ledger import Ledger


@pytest.fixture(autouse=True)
def _quick_sqlite(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test writes need not survive a power cut; child processes inherit it."""
    monkeypatch.setenv("TWINSTREAM_SQLITE_SYNCHRONOUS", "off")


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a ledger that is not there yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    url: str = request.getfixturevalue("postgres_database")
    return url


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    """An empty ledger under the database's own clock."""
    opened = Ledger.open(ledger_url)
    yield opened
    opened.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bench(ledger_url: str, clock: Clock) -> Iterator[Bench]:
    """A ledger with one generation, under a clock that the test moves."""
    opened = Ledger.open(ledger_url, clock=clock)
    yield Bench(opened, clock)
    opened.close()
