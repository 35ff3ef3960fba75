"""Runs a command and ends all of it when it ends, or when whoever started it is gone.

    python guard.py COMMAND …

It is started in a session of its own, with its standard input held open by the task. When that closes (the task
is done with it, timed out, was killed or died without a word) every process of the session is ended: spark-submit's
JVM, the Python driver that the JVM started, and the workers of both. On a Spark Connect server the work would go on
without its client, so the session there is released too, and so is that of an earlier try whose guard was killed as
well (TWINSTREAM_STALE). A command that is to outlive its task has a leash instead (TWINSTREAM_LEASH=seconds:file): it
touches that file as long as it is wanted and well, and is ended when it has not done so for so many seconds.
To run a command it uses nothing but the standard library: it must start at once.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

RELEASE_SECONDS = 20.0
KILLED = 128 + signal.SIGKILL
_ending = threading.Event()


def main() -> int:
    """Runs the command of this process's arguments; returns its exit code."""
    signal.signal(signal.SIGTERM, lambda *_: _end(KILLED))
    child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent)
    leash = os.environ.get("TWINSTREAM_LEASH", "")
    threading.Thread(target=_watch_leash if leash else _watch, args=(leash,) if leash else (), daemon=True).start()
    stale = threading.Thread(target=_release_session, args=(os.environ.get("TWINSTREAM_STALE", ""),), daemon=True)
    stale.start()
    code = child.wait()
    if _ending.is_set():
        # The other thread ended it and has more to do; it ends this process too.
        time.sleep(3 * RELEASE_SECONDS)
    if code < 0:
        _release()
    _sweep()
    stale.join(RELEASE_SECONDS)
    return code if code >= 0 else 128 - code


def _watch() -> None:
    while os.read(0, 1):
        pass
    _end(KILLED)


def _watch_leash(leash: str) -> None:
    seconds, _, name = leash.partition(":")
    with suppress(OSError):  # a file that is gone ends it too
        while time.time() - Path(name).stat().st_mtime < float(seconds):
            time.sleep(1.0)
    _end(KILLED)


def _end(code: int) -> None:
    _ending.set()
    _sweep()
    _release()
    os._exit(code)


def _sweep() -> None:
    """Ends every other process of this session, also those that made a process group of their own."""
    deadline = time.monotonic() + RELEASE_SECONDS
    while (others := _others()) and time.monotonic() < deadline:
        for pid in others:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.02)


def _others() -> list[int]:
    me = os.getpid()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != me:
            try:
                state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            except OSError:
                continue
            if int(session) == me and state not in "ZX":
                found.append(int(entry.name))
    return found


def _die_with_parent() -> None:
    """Even when this process is killed, what it started goes with it."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _release() -> None:
    """Stops what the command still has running on a Spark Connect server."""
    address = os.environ.get("TWINSTREAM_MASTER", "")
    if not address.startswith("sc://"):
        return
    worker = threading.Thread(target=_release_session, args=(address,), daemon=True)
    worker.start()
    worker.join(RELEASE_SECONDS)


def _release_session(address: str) -> None:
    """Ends a session and its work; one that is closed already, which Spark answers with an error, needs no ending."""
    if address:
        from pyspark.sql import SparkSession

        with suppress(Exception):
            session = SparkSession.builder.remote(address).create()
            session.interruptAll()
            session.stop()


if __name__ == "__main__":
    sys.exit(main())
