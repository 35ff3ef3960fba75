"""A PostgreSQL server from the machine's packages, in a folder of ours, on a loopback port.

PostgreSQL refuses to run as root, so root runs it as another user.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import psycopg

from bin.lib.local.processes import spawn, tail
from twinstream.errors import EnvironmentMissing

SUPERUSER = "twinstream_admin"
START_SECONDS = 60
LOOPBACK = {"listen_addresses": "127.0.0.1", "unix_socket_directories": ""}


class PortTaken(EnvironmentMissing):
    """Another program took the port between choosing and binding it."""


def find_programs() -> Path:
    """The folder with initdb and postgres: the one named by TWINSTREAM_POSTGRES_BIN, Debian's newest, or the PATH's."""
    candidates = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version_of, reverse=True)
    if named := os.environ.get("TWINSTREAM_POSTGRES_BIN"):
        candidates = [Path(named)]
    elif on_path := shutil.which("initdb"):
        candidates.append(Path(on_path).resolve().parent)
    for folder in candidates:
        if all(os.access(folder / program, os.X_OK) for program in ("initdb", "postgres")):
            return folder
    raise EnvironmentMissing(
        "PostgreSQL's server programs (initdb, postgres) were not found.",
        next_step="Install them (Debian, Ubuntu: apt-get install postgresql; macOS: brew install postgresql), or name "
        "their folder in TWINSTREAM_POSTGRES_BIN.",
    )


def unprivileged_user() -> pwd.struct_passwd | None:
    """Whom root runs the server as; None when we are not root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise EnvironmentMissing(
        "PostgreSQL does not run as root, and there is no user 'postgres' or 'nobody' to run it as.",
        next_step="Add a user 'postgres', or run this command as an ordinary user.",
    )


def make_cluster(programs: Path, folder: Path, user: pwd.struct_passwd | None, password: str) -> None:
    """Makes the data directory, with a password so that no one else on the machine gets in."""
    folder.mkdir(parents=True, exist_ok=True)
    password_file = folder / "password"
    password_file.touch(mode=0o600)
    password_file.write_text(password + "\n")
    if user:
        os.chown(folder, user.pw_uid, user.pw_gid)
        os.chown(password_file, user.pw_uid, user.pw_gid)
        _require_reachable(folder, user)
    command: list[str | Path] = [programs / "initdb", "--pgdata", folder / "data", "--username", SUPERUSER]
    command += [
        "--pwfile",
        password_file,
        "--auth",
        "scram-sha-256",
        "--encoding",
        "UTF8",
        "--locale",
        "C",
        "--no-sync",
    ]
    log = folder / "initdb.log"
    made = spawn(command, log, _environment(), folder, user)
    code = made.wait()
    password_file.unlink()
    if code != 0:
        shutil.rmtree(folder / "data", ignore_errors=True)
        raise EnvironmentMissing(
            f"initdb failed with exit code {code}: {tail(log)}", next_step="Mend that, then start again."
        )


def serve(
    programs: Path,
    folder: Path,
    user: pwd.struct_passwd | None,
    port: int,
    settings: Mapping[str, str],
    *,
    ends_with_starter: bool = False,
) -> subprocess.Popen[bytes]:
    """Starts the server, which answers a moment later; it can be made to end when its starter is killed."""
    options = [part for name, value in (LOOPBACK | dict(settings)).items() for part in ("-c", f"{name}={value}")]
    (folder / "log").unlink(missing_ok=True)
    command: list[str | Path] = [programs / "postgres", "-D", folder / "data", "-p", str(port), *options]
    if ends_with_starter and shutil.which("setpriv"):
        command = ["setpriv", "--pdeathsig", "INT", *command]
    return spawn(command, folder / "log", _environment(), folder, user)


def wait_until_ready(server: subprocess.Popen[bytes], port: int, password: str, log: Path) -> None:
    """Returns when a connection succeeds; raises with the server's log when it ends or stays silent."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            text = tail(log)
            failure = PortTaken if "Address already in use" in text else EnvironmentMissing
            raise failure(
                f"PostgreSQL ended with exit code {server.returncode} while starting: {text}",
                next_step="Mend what its log says, then start again.",
            )
        try:
            psycopg.connect(
                host="127.0.0.1", port=port, user=SUPERUSER, password=password, dbname="postgres", connect_timeout=2
            ).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    raise EnvironmentMissing(f"PostgreSQL did not answer within {START_SECONDS} s.", next_step=f"Its log is {log}.")


def _environment() -> dict[str, str]:
    """Without the PG* variables from outside."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def _require_reachable(folder: Path, user: pwd.struct_passwd) -> None:
    """Root's own folders are often closed to all others, also to the user that the server runs as."""
    asked = subprocess.run(
        ["test", "-w", str(folder)], user=user.pw_uid, group=user.pw_gid, extra_groups=[], check=False, cwd="/"
    )
    if asked.returncode != 0:
        raise EnvironmentMissing(
            f"PostgreSQL runs as the user {user.pw_name}, who cannot reach {folder}.",
            next_step="Set TWINSTREAM_HOME to a folder below one that others may enter, for example "
            "/var/lib/twinstream, or run this command as an ordinary user.",
        )


def _version_of(folder: Path) -> float:
    """The version in a path like /usr/lib/postgresql/15/bin."""
    found = re.search(r"/(\d+(?:\.\d+)?)/bin$", str(folder))
    return float(found[1]) if found else 0.0
