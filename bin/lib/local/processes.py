"""Processes in sessions of their own: known by pid and start time, and stopped with everything they started."""

from __future__ import annotations

import os
import pwd
import signal
import socket
import subprocess
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from twinstream.errors import EnvironmentMissing

STOP_SECONDS = 20.0


@dataclass(frozen=True)
class Started:
    """A process that was started here; its start time tells it from a later one that was given the same pid."""

    name: str
    pid: int
    started: float
    stop_signal: int = signal.SIGTERM

    @classmethod
    def of(cls, name: str, process: subprocess.Popen[bytes], stop_signal: int = signal.SIGTERM) -> Started:
        return cls(name, process.pid, psutil.Process(process.pid).create_time(), int(stop_signal))

    def is_running(self) -> bool:
        with suppress(psutil.NoSuchProcess):
            found = psutil.Process(self.pid)
            return bool(found.create_time() == self.started and found.status() != psutil.STATUS_ZOMBIE)
        return False

    def family(self) -> list[psutil.Process]:
        """The process, all in its session, and all that descend from them: what a stop must not leave behind."""
        found = {process.pid: process for process in _in_session(self.pid, self.started)}
        for process in list(found.values()):
            with suppress(psutil.NoSuchProcess):
                found |= {child.pid: child for child in process.children(recursive=True)}
        return list(found.values())


def spawn(
    command: Sequence[str | Path],
    log: Path,
    environment: Mapping[str, str],
    folder: Path,
    user: pwd.struct_passwd | None = None,
) -> subprocess.Popen[bytes]:
    """Runs a program in a session of its own, so that a signal to the terminal or to its starter does not reach it."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [str(part) for part in command],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=[] if user else None,
        )


def stop(*processes: Started, seconds: float = STOP_SECONDS) -> None:
    """Asks all of them to end, and ends by force what is left of their families after that."""
    families = {process: process.family() for process in processes}
    for process in processes:
        if process.is_running():
            with suppress(ProcessLookupError):
                os.kill(process.pid, process.stop_signal)
    _wait([member for process, family in families.items() for member in family if member.pid == process.pid], seconds)
    left = {member for process, family in families.items() for member in (*family, *process.family())}
    for number in (signal.SIGTERM, signal.SIGKILL):
        left = {member for member in left if _lives(member)}
        for member in left:
            with suppress(psutil.NoSuchProcess):
                member.send_signal(number)
        _wait(left, 5.0)


def free_port(wanted: int | None = None) -> int:
    """A loopback port that nothing listens on just now: the one that is wanted, if it can be had."""
    for port in filter(None, (wanted,)):
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(name: str, process: subprocess.Popen[bytes], port: int, log: Path, seconds: float) -> None:
    """Returns when something listens there; raises when the process ends or stays silent."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        require_alive(name, process, log)
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise EnvironmentMissing(f"{name} did not answer within {seconds:g} s.", next_step=f"Its log: {log}.")


def require_alive(name: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Raises with the end of its log when a process that is to start has ended."""
    if process.poll() is not None:
        raise EnvironmentMissing(
            f"{name} ended with exit code {process.returncode} while starting: {tail(log)}",
            next_step="Mend what it says, then start again.",
        )


def tail(log: Path, lines: int = 20) -> str:
    """The end of a log, for an error message."""
    text = log.read_text(errors="replace") if log.exists() else ""
    return "\n".join(text.splitlines()[-lines:])


def _in_session(session: int, since: float) -> Iterable[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError, PermissionError):
            if os.getsid(process.pid) == session and process.create_time() >= since:
                yield process


def _lives(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


def _wait(processes: Collection[psutil.Process], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while any(_lives(process) for process in processes) and time.monotonic() < deadline:
        time.sleep(0.05)
