"""Opening the ledger's database: SQLite on one host, PostgreSQL beyond, with the checks that keep both honest."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Connection,
    create_engine,
    event,
    func,
    insert,
    inspect,
    select,
    text,
    update,
)
from sqlalchemy.engine import Engine, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    IntegrityError,
    NoSuchModuleError,
    OperationalError,
)
from sqlalchemy.pool import NullPool

from twinstream.errors import LedgerError, LedgerLocked, LedgerNewer
from twinstream.failpoints import durable
from twinstream.ledger import schema

REVISIONS = ("0001",)
"""Migrations this version knows, oldest first."""

NETWORK_FILESYSTEMS = frozenset(
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "beegfs",
        "gpfs",
        "fuse.sshfs",
        "fuse.s3fs",
        "fuse.gcsfuse",
        "fuse.glusterfs",
        "fuse.cephfs",
        "fuse.rclone",
        "fuse.blobfuse2",
        "davfs",
    ]
)
BUSY_SECONDS = 20.0
HOST_QUIET_MICROS = 10 * 60 * 1_000_000
HOST_REFRESH_MICROS = 60 * 1_000_000


class Database:
    """Transactions on the ledger, with one clock: the database's."""

    def __init__(self, engine: Engine, clock: Callable[[], int] | None = None) -> None:
        self._engine = engine
        self._clock = clock
        self.dialect = engine.dialect.name
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=lambda: engine.dispose(close=False))

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A consistent view; writes nothing."""
        with self._errors(), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self, step: str) -> Iterator[Connection]:
        """One durable ledger transaction, named for the failpoints around it."""
        with self._errors(), self._engine.connect() as plain:
            connection = plain.execution_options(twinstream_write=True)
            with durable(f"ledger.{step}"), connection.begin():
                yield connection

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
        """Takes turns with others that plan or lease the same generation, for the rest of this transaction."""
        if self.dialect != "sqlite":
            column = schema.generations.c.id
            connection.execute(select(column).where(column == generation).with_for_update())

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError:
            raise
        except OperationalError as error:
            reason = str(error.orig)
            if "locked" in reason or "busy" in reason:
                raise LedgerLocked(
                    f"The ledger stayed locked by another program for {BUSY_SECONDS:.0f} seconds.",
                    next_step="Close the program that keeps a transaction open on it, then run the command again.",
                ) from error
            raise LedgerError(
                f"The ledger cannot be used: {reason.strip()}.",
                next_step="Check TWINSTREAM_LEDGER_URL and that the database is up, then run the command again.",
            ) from error
        except DBAPIError as error:
            raise LedgerError(f"The ledger refused a statement: {str(error.orig).strip()}.") from error


def open_database(url: str, *, clock: Callable[[], int] | None = None, create: bool = True) -> Database:
    """Opens the ledger at `url`, making its tables when it is new."""
    database = open_unchecked(url, clock=clock)
    _check_version(database, create)
    if database.dialect == "sqlite":
        _check_host(database)
    return database


def open_unchecked(url: str, *, clock: Callable[[], int] | None = None) -> Database:
    """Opens the database without asking what is in it."""
    try:
        parsed = make_url(url)
        if parsed.drivername in ("postgresql", "postgres"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.get_backend_name() == "sqlite":
            _check_place(parsed.database)
            return Database(_sqlite_engine(str(parsed.database)), clock)
        return Database(create_engine(parsed, pool_pre_ping=True, isolation_level="READ COMMITTED"), clock)
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        raise LedgerError(
            "TWINSTREAM_LEDGER_URL is not the address of a database that can be used.",
            next_step="Use sqlite:////path/to/ledger.db or postgresql://user:password@host/database.",
        ) from error


def upgrade(database: Database) -> None:
    """Runs the migrations that this ledger has not seen."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    with database.write("upgrade") as connection:
        if database.dialect == "postgresql":
            connection.execute(text("select pg_advisory_xact_lock(820614)"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def revision(database: Database) -> str | None:
    """The newest migration the ledger has seen, or None for an empty database."""
    with database.read() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        return connection.execute(text("select version_num from alembic_version")).scalar()


def _sqlite_engine(path: str) -> Engine:
    engine = create_engine(
        f"sqlite:///{path}",
        poolclass=NullPool,
        connect_args={
            "timeout": BUSY_SECONDS,
            "isolation_level": None,
            "check_same_thread": False,
        },
    )

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _record: Any) -> None:
        connection.execute("pragma journal_mode=wal")
        connection.execute(f"pragma synchronous={os.environ.get('TWINSTREAM_SQLITE_SYNCHRONOUS', 'full')}")
        connection.execute("pragma foreign_keys=on")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("twinstream_write", False)
        connection.exec_driver_sql("begin immediate" if writes else "begin")

    return engine


def filesystem_of(path: Path, mounts: str = "/proc/mounts") -> str:
    """The type of the file system that holds `path`; empty where that cannot be known."""
    try:
        lines = Path(mounts).read_text().splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    real = str(path.resolve())
    for line in lines:
        parts = line.split()
        point = parts[1].replace("\\040", " ")
        if (real == point or real.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
            best, kind = point, parts[2]
    return kind


def _check_place(path: str | None) -> None:
    if not path or path == ":memory:":
        raise LedgerError("The ledger must be a file: an in-memory SQLite database is gone when the process ends.")
    folder = Path(path).resolve().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LedgerError(
            f"The folder of the ledger, {folder}, cannot be made: {error.strerror}.",
            next_step="Set TWINSTREAM_HOME or TWINSTREAM_LEDGER_URL to a place that can be written.",
        ) from error
    kind = filesystem_of(folder)
    if kind in NETWORK_FILESYSTEMS:
        raise LedgerError(
            f"The SQLite ledger {path} is on a network file system ({kind}), where its locks cannot be trusted.",
            next_step="Put it on a local disk, or use PostgreSQL: TWINSTREAM_LEDGER_URL=postgresql://…",
        )


def _check_version(database: Database, create: bool) -> None:
    found = revision(database)
    if found is None:
        if not create:
            raise LedgerError(
                "There is no ledger at TWINSTREAM_LEDGER_URL yet.",
                next_step="Run `twinstream drain P`.",
            )
        upgrade(database)
    elif found not in REVISIONS:
        raise LedgerNewer(
            f"The ledger has version {found}; this Twinstream knows versions up to {REVISIONS[-1]}.",
            next_step="Upgrade Twinstream, or point TWINSTREAM_LEDGER_URL at another ledger.",
        )
    elif found != REVISIONS[-1]:
        raise LedgerError(
            f"The ledger has version {found}; this Twinstream needs {REVISIONS[-1]}.",
            next_step="Make a backup with `twinstream ledger backup`, then run `twinstream ledger upgrade`.",
        )


def host_identity() -> str:
    """A name for this host that survives restarts; containers without one can set TWINSTREAM_HOST_ID."""
    named = os.environ.get("TWINSTREAM_HOST_ID")
    if named:
        return named
    try:
        machine = Path("/etc/machine-id").read_text().strip()
    except OSError:
        machine = ""
    return f"{machine}@{socket.gethostname()}"


def _check_host(database: Database) -> None:
    """SQLite is for one host: a second one that is active at the same time is refused."""
    host, table = host_identity(), schema.hosts
    with database.read() as connection:
        now = database.now(connection)
        row = connection.execute(select(table.c.host, table.c.seen_at).where(table.c.id == 1)).first()
    if row is not None and row.host == host and now - row.seen_at < HOST_REFRESH_MICROS:
        return
    if row is not None and row.host != host and now - row.seen_at < HOST_QUIET_MICROS:
        raise LedgerError(
            f"The SQLite ledger is in use by another host ({row.host.rpartition('@')[2]}).",
            next_step="Use PostgreSQL for more than one host: TWINSTREAM_LEDGER_URL=postgresql://… "
            "(a ledger that moved for good is accepted ten minutes after the other host last used it).",
        )
    with database.write("host") as connection:
        if connection.execute(select(func.count()).select_from(table)).scalar_one():
            connection.execute(update(table).values(host=host, seen_at=now))
        else:
            connection.execute(insert(table).values(id=1, host=host, seen_at=now))
