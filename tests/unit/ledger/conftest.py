"""Every test of the ledger runs on SQLite and on PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.postgres import postgres_database
from tests.unit.ledger.bench import Bench, Clock
from twinstream.ledger import Ledger


@pytest.fixture(autouse=True)
def _quick_sqlite(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test writes need not survive a power cut; child processes inherit it."""
    monkeypatch.setenv("TWINSTREAM_SQLITE_SYNCHRONOUS", "off")


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty ledger, made once."""
    file = tmp_path_factory.mktemp("ledger") / "template.db"
    Ledger.open(f"sqlite:///{file}").close()
    return file


@pytest.fixture(scope="session")
def postgres_template(postgres_url: str) -> Iterator[str]:
    """The name of a database with an empty ledger, made once."""
    with postgres_database(postgres_url) as url:
        Ledger.open(url).close()
        yield url.rpartition("/")[2]


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a ledger: of an empty one where the test wants one, else of one that is not there yet."""
    wanted = {"ledger", "bench"} & set(request.fixturenames)
    if request.param == "sqlite":
        file = tmp_path / "ledger.db"
        if wanted:
            shutil.copy(request.getfixturevalue("sqlite_template"), file)
        yield f"sqlite:///{file}"
        return
    template = request.getfixturevalue("postgres_template") if wanted else "template1"
    with postgres_database(request.getfixturevalue("postgres_url"), template) as url:
        yield url


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
