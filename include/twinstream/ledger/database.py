"""Opening the ledger's database: SQLite on one host, PostgreSQL beyond, with the checks that keep both honest."""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Connection,
    create_engine,
    event,
    inspect,
    select,
    text,
)
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, OperationalError
from sqlalchemy.pool import NullPool, Pool

from twinstream.errors import LedgerError, LedgerFull, LedgerLocked, LedgerNewer
from twinstream.failpoints import durable
from twinstream.filesystems import NETWORK, filesystem_of
from twinstream.ledger import hosts, schema
from twinstream.ledger.hosts import host_identity as host_identity

REVISIONS = ("0001", "0002")
"""Migrations this version knows, oldest first."""

BUSY_SECONDS = 20.0
"""How long a lock of another program is waited for."""
CONNECT_SECONDS = 10
ROOM_BYTES = 64 * 1024
"""With less than this on its disk a ledger cannot be opened."""
_LOCK_NOT_AVAILABLE = "55P03"
_engines: weakref.WeakSet[Engine] = weakref.WeakSet()
_migrating = threading.Lock()


class Database:
    """Transactions on the ledger, with one clock: the database's."""

    def __init__(self, engine: Engine, clock: Callable[[], int] | None = None) -> None:
        self._engine = engine
        self._clock = clock
        self._shown_at: float | None = None
        self.dialect = engine.dialect.name
        _engines.add(engine)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A consistent view; writes nothing."""
        with self._errors(), self._engine.connect() as connection:
            if self.dialect == "postgresql":
                connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with connection.begin():
                yield connection

    @contextmanager
    def write(self, step: str, generation: int | None = None) -> Iterator[Connection]:
        """One durable ledger transaction, named for the failpoints around it.

        With `generation` it takes turns with all others that write to that generation, as SQLite's always do: what
        it read stays true until it ends, and no two of them can wait for each other.
        """
        with self._errors(), self._engine.connect() as plain:
            connection = plain.execution_options(twinstream_write=True)
            with durable(f"ledger.{step}"), connection.begin():
                if self.dialect == "postgresql":
                    connection.exec_driver_sql(f"set local lock_timeout = {int(BUSY_SECONDS * 1000)}")
                if generation is not None:
                    self.lock_generation(connection, generation)
                self._show_host(connection)
                yield connection

    def check_host(self) -> None:
        """From now on this process shows that its host is at work on the ledger; raises if another one is."""
        with self.read() as connection:
            known = hosts.is_known(connection, self.now(connection))
        self._shown_at = time.monotonic() if known else -math.inf
        if not known:
            with self.write("host"):
                """Every write shows the host when it is due."""

    def _show_host(self, connection: Connection) -> None:
        if self._shown_at is not None and time.monotonic() - self._shown_at >= hosts.REFRESH_SECONDS:
            hosts.show(connection, self.now(connection))
            self._shown_at = time.monotonic()

    def now(self, connection: Connection) -> int:
        """The database's clock: hosts that share a ledger share its time."""
        if self._clock is not None:
            return self._clock()
        if self.dialect == "sqlite":
            statement = text("select cast(round((julianday('now') - 2440587.5) * 86400000) as integer) * 1000")
        else:
            statement = text("select cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)")
        return int(connection.execute(statement).scalar_one())

    def lock_generation(self, connection: Connection, generation: int) -> None:
        """Takes turns with others that write to the same generation, for the rest of this transaction."""
        if self.dialect != "sqlite":
            column = schema.generations.c.id
            connection.execute(select(column).where(column == generation).with_for_update(key_share=True))

    def lock_pipeline(self, connection: Connection, pipeline: str) -> None:
        """Takes turns with others that add generations to a pipeline or swap them."""
        if self.dialect != "sqlite":
            connection.execute(text("select pg_advisory_xact_lock(820615, hashtext(:name))"), {"name": pipeline})

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError:
            raise
        except DBAPIError as error:
            raise self._explained(error) from error

    def _explained(self, error: DBAPIError) -> LedgerError:
        """What a user can do about it; the password of the URL never shows."""
        reason = " ".join(str(error.orig).split()).rstrip(".")
        password = self._engine.url.password
        if password:
            reason = reason.replace(str(password), "***")
        place = shown(self._engine.url)
        code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or _sqlstate(error) == _LOCK_NOT_AVAILABLE:
            return LedgerLocked(
                f"The ledger {place} stayed locked by another program for {BUSY_SECONDS:g} seconds.",
                next_step="Close the program that keeps a transaction open on it, then run the command again.",
            )
        if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _no_room(self._engine.url)):
            return LedgerFull(
                f"There is no room left on the disk of the ledger {place}.",
                untouched="What was committed stays; nothing is committed by halves.",
                next_step="Make room, then run the command again: it goes on where this one stopped.",
            )
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            return LedgerError(
                f"The file {place} is no ledger, or it is damaged: {reason}.",
                next_step="Point TWINSTREAM_LEDGER_URL at a ledger, or restore a backup into a new one.",
            )
        if isinstance(error, OperationalError):
            return LedgerError(
                f"The ledger {place} cannot be used: {reason}.",
                next_step="Check TWINSTREAM_LEDGER_URL and that the database is up and may be written, "
                "then run the command again.",
            )
        return LedgerError(f"The ledger {place} refused a statement: {reason}.")


def open_database(url: str, *, clock: Callable[[], int] | None = None, create: bool = True) -> Database:
    """Opens the ledger at `url`, making its tables when it is new."""
    database = open_unchecked(url, clock=clock, create=create)
    try:
        check_version(database, create)
        if database.dialect == "sqlite":
            database.check_host()
    except BaseException:
        database.close()
        raise
    return database


def open_unchecked(url: str, *, clock: Callable[[], int] | None = None, create: bool = True) -> Database:
    """Opens the database without asking what is in it."""
    try:
        parsed = make_url(url)
        kind = parsed.get_backend_name()
        if kind == "sqlite" and not parsed.query:
            _check_place(parsed.database, create)
            return Database(sqlite_engine(str(parsed.database)), clock)
        if kind in ("postgresql", "postgres") and "@" not in (parsed.host or ""):
            return Database(_postgres_engine(parsed), clock)
        reason = "" if kind in ("sqlite", "postgresql", "postgres") else f" ({kind} is not supported)"
    except (ArgumentError, ValueError):
        reason = ""
    raise LedgerError(
        f"TWINSTREAM_LEDGER_URL is not the address of a database that can be used{reason}.",
        next_step="Use sqlite:////path/to/ledger.db or postgresql://user:password@host/database, "
        "with special letters of the password written as %40 for @, %2F for /, %3A for :.",
    )


def shown(url: URL) -> str:
    """Which ledger it is, without its secrets: the file, or server and database."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return f"{url.database} on {url.host or 'localhost'}" + (f":{url.port}" if url.port else "")


def upgrade(database: Database) -> None:
    """Runs the migrations that this ledger has not seen."""
    from alembic import command
    from alembic.config import Config

    found = revision(database)
    if found is not None and found not in REVISIONS:
        raise _newer(found)
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    with _migrating, database.write("upgrade") as connection:
        if database.dialect == "postgresql":
            connection.execute(text("select pg_advisory_xact_lock(820614)"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def revision(database: Database) -> str | None:
    """The newest migration the ledger has seen, or None for an empty database."""
    with database.read() as connection:
        tables = inspect(connection)
        if not tables.has_table("alembic_version"):
            return None
        found: str | None = connection.execute(text("select version_num from alembic_version")).scalar()
        if found is not None and not tables.has_table(schema.generations.name):
            raise LedgerError(
                "TWINSTREAM_LEDGER_URL names the database of another program (Airflow's own, perhaps).",
                next_step="Give the ledger a database of its own.",
            )
        return found


def sqlite_engine(path: str, pool: type[Pool] = NullPool) -> Engine:
    """SQLite as a ledger wants it; no connection is kept, because Airflow forks its tasks."""
    engine = create_engine(
        URL.create("sqlite", database=path),
        poolclass=pool,
        connect_args={
            "timeout": BUSY_SECONDS,
            "isolation_level": None,
            "check_same_thread": False,
        },
    )

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _record: Any) -> None:
        _use_wal(connection)
        connection.execute(f"pragma synchronous={os.environ.get('TWINSTREAM_SQLITE_SYNCHRONOUS', 'full')}")
        connection.execute("pragma foreign_keys=on")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("twinstream_write", False)
        connection.exec_driver_sql("begin immediate" if writes else "begin")

    return engine


def _use_wal(connection: sqlite3.Connection) -> None:
    """SQLite does not wait for others that switch a new file to WAL at the same moment, so this does."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("pragma journal_mode=wal")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(0.01)


def _postgres_engine(url: URL) -> Engine:
    patience = {} if "connect_timeout" in url.query else {"connect_timeout": CONNECT_SECONDS}
    return create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_pre_ping=True,
        isolation_level="READ COMMITTED",
        connect_args=patience,
    )


def _no_room(url: URL) -> bool:
    """SQLite calls it an I/O error when there is no room for its shared memory."""
    return shutil.disk_usage(Path(str(url.database)).resolve().parent).free < ROOM_BYTES


def _sqlstate(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)


def _forget_connections() -> None:
    """A connection that two processes use breaks both: a child that was forked starts with none."""
    for engine in list(_engines):
        engine.dispose(close=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_connections)


def _check_place(path: str | None, create: bool) -> None:
    if not path or path == ":memory:":
        raise LedgerError("The ledger must be a file: an in-memory SQLite database is gone when the process ends.")
    folder = Path(path).resolve().parent
    try:
        if not create and not Path(path).exists():
            raise _no_ledger()
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LedgerError(
            f"The folder of the ledger, {folder}, cannot be used: {error.strerror}.",
            next_step="Set TWINSTREAM_HOME or TWINSTREAM_LEDGER_URL to a place that can be written.",
        ) from error
    kind = filesystem_of(folder)
    if kind in NETWORK:
        raise LedgerError(
            f"The SQLite ledger {path} is on a network file system ({kind}), where its locks cannot be trusted.",
            next_step="Put it on a local disk, or use PostgreSQL: TWINSTREAM_LEDGER_URL=postgresql://…",
        )


def check_version(database: Database, create: bool) -> None:
    """Refuses a ledger that this version cannot use; makes the tables of a new one where that is wanted."""
    found = revision(database)
    if found is None:
        if not create:
            raise _no_ledger()
        upgrade(database)
    elif found not in REVISIONS:
        raise _newer(found)
    elif found != REVISIONS[-1]:
        raise LedgerError(
            f"The ledger has version {found}; this Twinstream needs {REVISIONS[-1]}.",
            next_step="Make a backup of the database, then run `twinstream ledger upgrade`.",
        )


def _newer(found: str) -> LedgerNewer:
    return LedgerNewer(
        f"The ledger has version {found}; this Twinstream knows versions up to {REVISIONS[-1]}.",
        next_step="Upgrade Twinstream, or point TWINSTREAM_LEDGER_URL at another ledger.",
    )


def _no_ledger() -> LedgerError:
    return LedgerError("There is no ledger at TWINSTREAM_LEDGER_URL yet.", next_step="Run `twinstream drain P`.")
