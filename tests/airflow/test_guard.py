"""The guard: whatever ends a task, nothing of what it started is left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.airflow.processes import wait_until, with_argument

ROOT = Path(__file__).resolve().parents[2]
GUARD = str(ROOT / "plugins" / "twinstream_airflow" / "running" / "guard.py")
# A child, a grandchild in the background, and one in a process group of its own, as Python workers of Spark are.
FAMILY = "set -m; sleep {0} & sh -c 'sleep {0} & wait' & exec sleep {0}"


@pytest.fixture
def mark() -> Iterator[str]:
    chosen = f"{random.randint(10_000, 99_999)}.{os.getpid()}"
    yield chosen
    for pid in with_argument(chosen):
        os.kill(pid, signal.SIGKILL)


def start(*command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, GUARD, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )


def start_family(mark: str) -> subprocess.Popen[bytes]:
    guard = start("bash", "-c", FAMILY.format(mark))
    assert wait_until(lambda: len(sleeping(mark)) == 3)
    return guard


def sleeping(mark: str) -> list[int]:
    return [pid for pid in with_argument(mark) if Path(f"/proc/{pid}/comm").read_text().strip() == "sleep"]


def test_a_command_that_ends_by_itself_hands_its_exit_code_on(mark: str) -> None:
    guard = start("bash", "-c", "echo said; exit 3")
    assert guard.stdout is not None
    assert (guard.stdout.read(), guard.wait(30)) == (b"said\n", 3)


def test_what_a_command_left_behind_ends_with_it(mark: str) -> None:
    guard = start("bash", "-c", f"set -m; sleep {mark} & exit 0")
    assert guard.wait(30) == 0
    assert with_argument(mark) == []


def test_all_of_it_ends_when_the_task_lets_go(mark: str) -> None:
    guard = start_family(mark)
    assert guard.stdin is not None
    guard.stdin.close()
    assert guard.wait(30) != 0
    assert with_argument(mark) == []


def test_all_of_it_ends_when_the_guard_is_asked_to(mark: str) -> None:
    guard = start_family(mark)
    guard.terminate()
    assert guard.wait(30) != 0
    assert with_argument(mark) == []


def test_all_of_it_ends_when_the_task_is_killed_without_a_word(mark: str) -> None:
    task = subprocess.Popen(
        [
            sys.executable, "-c",
            "import subprocess as s, sys; s.Popen(sys.argv[1:], stdin=s.PIPE, start_new_session=True).wait()",
            sys.executable, GUARD, "bash", "-c", FAMILY.format(mark),
        ]
    )  # fmt: skip
    assert wait_until(lambda: len(sleeping(mark)) == 3)
    task.kill()
    task.wait(10)
    assert wait_until(lambda: with_argument(mark) == [])


def test_the_command_ends_even_when_the_guard_itself_is_killed(mark: str) -> None:
    guard = start("sleep", mark)
    assert wait_until(lambda: len(sleeping(mark)) == 1)
    guard.kill()
    guard.wait(10)
    assert wait_until(lambda: with_argument(mark) == [])


def test_on_a_leash_a_command_outlives_whoever_started_it_as_long_as_it_is_touched(mark: str, tmp_path: Path) -> None:
    leash = tmp_path / "leash"
    leash.touch()
    starter = subprocess.Popen(
        [
            sys.executable, "-c",
            "import subprocess as s, sys; s.Popen(sys.argv[1:], stdin=s.DEVNULL, start_new_session=True)",
            sys.executable, GUARD, "bash", "-c", FAMILY.format(mark),
        ],
        env={**os.environ, "TWINSTREAM_LEASH": f"3:{leash}"},
    )  # fmt: skip

    def alive() -> int:
        leash.touch()
        return len(sleeping(mark))

    assert starter.wait(30) == 0
    assert wait_until(lambda: alive() == 3)
    longer = time.monotonic() + 5
    while time.monotonic() < longer:
        assert alive() == 3
        time.sleep(0.2)
    assert wait_until(lambda: with_argument(mark) == [])
