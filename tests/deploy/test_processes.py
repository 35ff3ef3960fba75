"""What was started here is stopped whole, and nothing else is."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from bin.lib.local.processes import Started, free_port, spawn, stop

# A process with a child that does not listen to SIGTERM and a grandchild in a session of its own.
FAMILY = """
import os, signal, subprocess, sys, time
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["sleep", "600"], start_new_session=True)
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def family(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    log = tmp_path / "log"
    process = spawn([sys.executable, "-c", FAMILY], log, {}, tmp_path)
    while log.read_text().count("ready") < 2:
        assert process.poll() is None
        time.sleep(0.02)
    members = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    assert len(members) == 3
    yield process
    for member in members:
        if member.is_running():
            member.kill()
    process.wait()


def alive(processes: list[psutil.Process]) -> list[str]:
    return [member.name() for member in processes if member.is_running() and member.status() != psutil.STATUS_ZOMBIE]


def test_a_stop_ends_children_that_do_not_listen_and_those_in_sessions_of_their_own(
    family: subprocess.Popen[bytes],
) -> None:
    started = Started.of("family", family)
    members = started.family()
    assert started.is_running()
    assert len(alive(members)) == 3
    stop(started, seconds=5)
    assert alive(members) == []
    assert not started.is_running()


def test_children_are_found_when_their_parent_was_killed(family: subprocess.Popen[bytes]) -> None:
    started = Started.of("family", family)
    members = started.family()
    family.kill()
    family.wait()
    assert len(alive(members)) == 2
    stop(started, seconds=5)
    assert alive(members) == []


def test_another_process_that_was_given_the_same_pid_is_left_alone(family: subprocess.Popen[bytes]) -> None:
    started = Started.of("family", family)
    members = started.family()
    stop(replace(started, started=started.started + 3600.0), seconds=1)
    assert len(alive(members)) == 3


def test_a_port_that_is_wanted_is_given_unless_it_is_taken() -> None:
    import socket

    port = free_port()
    assert free_port(port) == port
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        assert free_port(port) != port
