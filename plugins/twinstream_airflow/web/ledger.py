"""The ledger as pages see it: opened so that the database itself refuses every write."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool

from twinstream.errors import LedgerError
from twinstream.ledger import Ledger
from twinstream.ledger.database import CONNECT_SECONDS, Database, check_version, revision

PATIENCE_SECONDS = 5
"""A page waits no longer than this for a lock."""


def open_ledger(url: str) -> Ledger | None:
    """The ledger at `url`; None where nobody has made one yet. One of another version is an error."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise LedgerError(
            "The address of the ledger cannot be understood.",
            next_step="Correct the Airflow connection twinstream_ledger, or TWINSTREAM_LEDGER_URL.",
        ) from error
    if parsed.get_backend_name() == "sqlite" and not Path(str(parsed.database)).exists():
        return None
    database = _database(url)
    if revision(database) is None:
        return None
    check_version(database, create=False)
    return Ledger(database)


@lru_cache(maxsize=4)
def _database(url: str) -> Database:
    parsed = make_url(url)
    return Database(_sqlite(str(parsed.database)) if parsed.get_backend_name() == "sqlite" else _postgres(parsed))


def _sqlite(path: str) -> Engine:
    place = f"file:{quote(str(Path(path).absolute()))}"
    engine = create_engine(
        URL.create("sqlite", database=place, query={"mode": "ro", "uri": "true"}),
        poolclass=NullPool,
        connect_args={"timeout": PATIENCE_SECONDS, "isolation_level": None, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def only_read(connection: Any, _record: Any) -> None:
        connection.execute("pragma query_only=on")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("begin")

    return engine


def _postgres(url: URL) -> Engine:
    patience = {} if "connect_timeout" in url.query else {"connect_timeout": CONNECT_SECONDS}
    return create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_pre_ping=True,
        execution_options={"postgresql_readonly": True},
        connect_args={"options": "-c default_transaction_read_only=on", **patience},
    )
