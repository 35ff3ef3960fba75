"""What the fault tests share: quick ledgers, one Spark Connect server, and homes that are made once and copied."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import INTERPRETED
from tests.faults.stage import Prepared
from tests.servers.spark_connect import spark_connect_server
from twinstream.ledger import Ledger


@pytest.fixture(autouse=True)
def _quick_sqlite(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test writes need not survive a power cut; child processes inherit it."""
    monkeypatch.setenv("TWINSTREAM_SQLITE_SYNCHRONOUS", "off")


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh ledger, made once and copied for every run of the model."""
    file = tmp_path_factory.mktemp("model") / "template.db"
    ledger = Ledger.open(f"sqlite:///{file}")
    with ledger.database.read() as connection:
        connection.exec_driver_sql("pragma wal_checkpoint(truncate)")
    ledger.close()
    return file


@pytest.fixture(scope="session")
def connect() -> Iterator[str]:
    """Real Spark that outlives the processes that the tests kill."""
    with spark_connect_server(INTERPRETED) as url:
        yield url


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory, connect: str) -> Prepared:
    """Homes as the scenes need them."""
    return Prepared(tmp_path_factory.mktemp("scenes"), connect)
