"""A throw-away PostgreSQL server: a real one, on a free loopback port, gone when the block ends."""

from __future__ import annotations

import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from bin.lib.local import postgres
from bin.lib.local.processes import Started, free_port, stop

# A test's data need not outlive the machine.
SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "100",
}


@contextmanager
def postgres_server() -> Iterator[str]:
    """Starts a server of its own and yields the SQLAlchemy URL of its database `postgres`."""
    folder = Path(tempfile.mkdtemp(prefix="twinstream-postgres-"))
    try:
        password = secrets.token_hex(16)
        postgres.make_cluster(postgres.find_programs(), folder, postgres.unprivileged_user(), password)
        server, port = _start(folder, password)
        try:
            yield f"postgresql+psycopg://{postgres.SUPERUSER}:{password}@127.0.0.1:{port}/postgres"
        finally:
            _stop(server)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres_database(server_url: str, template: str = "template1") -> Iterator[str]:
    """Makes a database on a running server, empty or a copy of another one, yields its URL and drops it."""
    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(libpq_url(server_url), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"'.encode())
        try:
            yield server_url.rsplit("/", 1)[0] + f"/{name}"
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def libpq_url(sqlalchemy_url: str) -> str:
    """The same URL without SQLAlchemy's driver name, as psycopg itself takes it."""
    return sqlalchemy_url.replace("postgresql+psycopg://", "postgresql://", 1)


def _start(folder: Path, password: str) -> tuple[subprocess.Popen[bytes], int]:
    """Starts the server and waits until it answers; another port is tried when the first one was taken meanwhile."""
    for attempt in range(5):
        port = free_port()
        server = postgres.serve(
            postgres.find_programs(), folder, postgres.unprivileged_user(), port, SETTINGS, ends_with_starter=True
        )
        try:
            postgres.wait_until_ready(server, port, password, folder / "log")
        except BaseException as failure:
            _stop(server)
            if isinstance(failure, postgres.PortTaken) and attempt < 4:
                continue
            raise
        return server, port
    raise AssertionError("unreachable: the last attempt returns or raises")


def _stop(server: subprocess.Popen[bytes]) -> None:
    """Without waiting for clients; its workers follow it."""
    if server.poll() is None:
        stop(Started.of("postgres", server, signal.SIGINT))
        server.wait()
