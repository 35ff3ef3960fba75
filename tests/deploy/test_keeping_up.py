"""A local Airflow whose parts end is kept up, or says why it cannot be."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from bin.lib.local.airflow import PARTS, RESTARTS, Airflow
from bin.lib.local.processes import Started, spawn, stop
from bin.lib.local.state import State
from twinstream.errors import EnvironmentMissing


class Pretended(Airflow):
    """Its parts are programs that wait."""

    def _run(self, name: str, command: tuple[str, ...]) -> subprocess.Popen[bytes]:
        waiting = f"import time; print('{name} says something last', flush=True); time.sleep(600)"
        return spawn([sys.executable, "-c", waiting], self.log(name), {}, self.home)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    state = State.load(tmp_path / "state.json")
    yield state
    stop(*state.processes)


def kill(process: Started, log: Path) -> None:
    while "last" not in (log.read_text() if log.exists() else ""):
        assert process.is_running()
    stop(process)


def part(state: State, name: str) -> Started:
    [found] = [process for process in state.processes if process.name == name]
    return found


def test_a_part_that_ends_is_started_again_and_one_that_does_not_stay_up_is_told(tmp_path: Path, state: State) -> None:
    airflow = Pretended(tmp_path, tmp_path, 0, "")
    said: list[str] = []
    for name in ("scheduler", "triggerer"):
        state.start(name, partial(airflow._run, name, PARTS[name]))
    look = airflow.keep_up(state, said.append)
    before = part(state, "triggerer")
    for time in range(1, RESTARTS + 1):
        look()
        assert len(said) == time - 1, "nothing is done while all of them run"
        kill(part(state, "scheduler"), airflow.log("scheduler"))
        look()
        assert said[-1].startswith("Airflow's scheduler has ended and is started again")
        assert part(state, "scheduler").is_running()
        assert State.load(state.file).processes == state.processes, "a stop finds it, whoever asks for it"
    kill(part(state, "scheduler"), airflow.log("scheduler"))
    with pytest.raises(EnvironmentMissing, match=r"scheduler ended again and again: (?s:.*)says something last"):
        look()
    assert part(state, "triggerer") == before
