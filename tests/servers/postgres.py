"""A throw-away PostgreSQL server: a real one, on a free loopback port, gone when the block ends.

PostgreSQL refuses to run as root, so root starts it as another user.
"""

from __future__ import annotations

import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psycopg

SUPERUSER = "twinstream"
START_SECONDS = 60
STOP_SECONDS = 20
# A test's data need not outlive the machine.
SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "32MB",
    "max_connections": "100",
}


class ServerUnavailable(RuntimeError):
    """The server is not installed or did not start; the message says which, with its log."""


class PortTaken(ServerUnavailable):
    """Another program took the port between choosing and binding it."""


@contextmanager
def postgres_server() -> Iterator[str]:
    """Starts a server of its own and yields the SQLAlchemy URL of its database `postgres`."""
    programs = find_programs()
    user = unprivileged_user()
    folder = Path(tempfile.mkdtemp(prefix="twinstream-postgres-"))
    try:
        password = secrets.token_hex(16)
        make_cluster(programs, folder, user, password)
        server, port = start(programs, folder, user, password)
        try:
            yield f"postgresql+psycopg://{SUPERUSER}:{password}@127.0.0.1:{port}/postgres"
        finally:
            stop(server)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres_database(server_url: str) -> Iterator[str]:
    """Makes an empty database on a running server, yields its URL and drops it."""
    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(libpq_url(server_url), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
        try:
            yield server_url.rsplit("/", 1)[0] + f"/{name}"
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def libpq_url(sqlalchemy_url: str) -> str:
    """The same URL without SQLAlchemy's driver name, as psycopg itself takes it."""
    return sqlalchemy_url.replace("postgresql+psycopg://", "postgresql://", 1)


def find_programs() -> Path:
    """The folder with initdb and postgres: the one named by TWINSTREAM_POSTGRES_BIN, Debian's newest, or the PATH's."""
    candidates = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=version_of, reverse=True)
    if named := os.environ.get("TWINSTREAM_POSTGRES_BIN"):
        candidates = [Path(named)]
    elif on_path := shutil.which("initdb"):
        candidates.append(Path(on_path).resolve().parent)
    for folder in candidates:
        if all(os.access(folder / program, os.X_OK) for program in ("initdb", "postgres")):
            return folder
    raise ServerUnavailable(
        "PostgreSQL's server programs (initdb, postgres) were not found. Install them (Debian, Ubuntu: apt-get install "
        "postgresql; macOS: brew install postgresql), or name their folder in TWINSTREAM_POSTGRES_BIN."
    )


def version_of(folder: Path) -> float:
    """The version in a path like /usr/lib/postgresql/15/bin."""
    found = re.search(r"/(\d+(?:\.\d+)?)/bin$", str(folder))
    return float(found[1]) if found else 0.0


def unprivileged_user() -> pwd.struct_passwd | None:
    """Whom root runs the server as; None when we are not root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise ServerUnavailable(
        "PostgreSQL does not run as root, and there is no user 'postgres' or 'nobody' to run it as."
    )


def make_cluster(programs: Path, folder: Path, user: pwd.struct_passwd | None, password: str) -> None:
    """Makes the data directory, with a password so that no one else on the machine gets in."""
    password_file = folder / "password"
    password_file.write_text(password + "\n")
    if user:
        os.chown(folder, user.pw_uid, user.pw_gid)
        os.chown(password_file, user.pw_uid, user.pw_gid)
    command: list[str | Path] = [
        programs / "initdb",
        "--pgdata",
        folder / "data",
        "--username",
        SUPERUSER,
        "--pwfile",
        password_file,
    ]
    command += ["--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync"]
    made = spawn(command, folder, user, subprocess.PIPE)
    output = made.communicate()[0].decode(errors="replace")
    if made.returncode != 0:
        raise ServerUnavailable(f"initdb failed with exit code {made.returncode}:\n{output}")


def start(
    programs: Path, folder: Path, user: pwd.struct_passwd | None, password: str
) -> tuple[subprocess.Popen[bytes], int]:
    """Starts the server and waits until it answers; another port is tried when the first one was taken meanwhile."""
    for attempt in range(5):
        port = free_port()
        settings = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
        command: list[str | Path] = [programs / "postgres", "-D", folder / "data", "-p", str(port), *settings]
        with (folder / "log").open("wb") as log:
            server = spawn(command, folder, user, log)
        try:
            wait_until_ready(server, port, password, folder / "log")
        except BaseException as failure:
            stop(server)
            if isinstance(failure, PortTaken) and attempt < 4:
                continue
            raise
        return server, port
    raise AssertionError("unreachable: the last attempt returns or raises")


def spawn(
    command: list[str | Path], folder: Path, user: pwd.struct_passwd | None, output: int | IO[bytes]
) -> subprocess.Popen[bytes]:
    """Runs a program in a process group of its own, without root's rights and without PG* variables from outside.

    Where setpriv is at hand the program also ends when the tests are killed.
    """
    if shutil.which("setpriv"):
        command = ["setpriv", "--pdeathsig", "INT", *command]
    return subprocess.Popen(
        command,
        cwd=folder,
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        user=user.pw_uid if user else None,
        group=user.pw_gid if user else None,
        extra_groups=[] if user else None,
    )


def free_port() -> int:
    """A loopback port that nothing listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_ready(server: subprocess.Popen[bytes], port: int, password: str, log: Path) -> None:
    """Returns when a connection succeeds; raises with the server's log when it ends or stays silent."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            text = log.read_text(errors="replace")
            failure = PortTaken if "Address already in use" in text else ServerUnavailable
            raise failure(f"PostgreSQL ended with exit code {server.returncode} while starting:\n{text}")
        try:
            psycopg.connect(
                host="127.0.0.1", port=port, user=SUPERUSER, password=password, dbname="postgres", connect_timeout=2
            ).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    raise ServerUnavailable(f"PostgreSQL did not answer within {START_SECONDS} s:\n{log.read_text(errors='replace')}")


def stop(server: subprocess.Popen[bytes]) -> None:
    """Ends the server that was started here: politely, then at once, then by force; its workers follow it."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        if server.poll() is not None:
            return
        os.killpg(server.pid, number)
        try:
            server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            continue
