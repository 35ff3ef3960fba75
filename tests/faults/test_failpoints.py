"""Killed at every failpoint by SIGKILL in a real process, then started again: the result is the truth."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.home import Home
from tests.faults import failpoints
from tests.faults.processes import Command, Ran
from tests.servers.spark_connect import spark_connect_server

SIGKILL = -9
DRAIN = ["drain", "page_views", "--batch-records", "300", "--group", "2", "--wait", "30"]
FOLD = ["fold", "page_views"]
CLEAN = ["clean", "page_views", "--retain", "0", "--grace", "0"]

# Which command meets a step, and what has to be done before it does.
SCENES: dict[str, tuple[list[list[str]], list[str]]] = {
    "ledger.upgrade": ([], DRAIN),
    "ledger.host": ([], DRAIN),
    "ledger.generation": ([], DRAIN),
    "ledger.plan": ([], DRAIN),
    "ledger.lease": ([], DRAIN),
    "ledger.attempt": ([], DRAIN),
    "ledger.processed": ([], DRAIN),
    "ledger.committed": ([], DRAIN),
    "ledger.unlease": ([], DRAIN),
    "sink.create": ([], DRAIN),
    "sink.fence": ([], DRAIN),
    "sink.notes": ([], DRAIN),
    "sink.commit": ([], DRAIN),
    "stage.group": ([], DRAIN),
    "stage.late": ([], DRAIN),
    "stage.base": ([DRAIN], FOLD),
    "sink.base": ([DRAIN], FOLD),
    "sink.checkpoint": ([DRAIN], FOLD),
    "publish.create": ([DRAIN], FOLD),
    "publish.stage": ([DRAIN], FOLD),
    "publish.commit": ([DRAIN], FOLD),
    "ledger.remove-later": ([DRAIN, FOLD], CLEAN),
    "sink.replace": ([DRAIN, FOLD], CLEAN),
    "clean.delete": ([DRAIN, FOLD], CLEAN),
    "ledger.deleted": ([DRAIN, FOLD], CLEAN),
}
ELSEWHERE = {
    "ledger.rate": "one number that only sizes the next groups; too small a group teaches none",
    "ledger.renew": "the heartbeat; killed by test_processes.py",
    "ledger.hold": "tests/spark/runtime/test_gate.py and the model",
    "ledger.give-up": "the model",
    "ledger.cleaned": "the model",
    "sink.remove-staging": "the model",
    "ledger.release": "the model",
    "ledger.discard": "the model",
    "ledger.rebuild": "one transaction; tests/unit/ledger",
    "ledger.restore": "one transaction; tests/unit/ledger",
    "ledger.backup": "tests/unit/ledger",
    "ledger.promote": "one transaction; tests/unit/ledger",
    "ledger.pin": "one row that expires by itself",
    "ledger.unpin": "one row that expires by itself",
    "reinject.copy": "tests/spark/runtime/test_reinject.py",
}


def test_every_durable_call_has_a_failpoint() -> None:
    assert failpoints.unguarded() == []


def test_every_failpoint_has_a_scene() -> None:
    assert set(failpoints.steps()) == set(SCENES) | set(ELSEWHERE)


@pytest.fixture(scope="module")
def connect() -> Iterator[str]:
    with spark_connect_server() as url:
        yield url


class Stage:
    """Commands against one home."""

    def __init__(self, home: Home, url: str) -> None:
        self.home = home
        self.environment = {
            "TWINSTREAM_HOME": str(home.folder),
            "TWINSTREAM_PIPELINES": str(home.pipelines),
            "TWINSTREAM_MASTER": url,
            "TWINSTREAM_SQLITE_SYNCHRONOUS": "off",
            "TWINSTREAM_FAILPOINT": "",
        }

    def run(self, arguments: list[str], failpoint: str = "") -> Ran:
        return Command(self.home.folder, arguments, self.environment | {"TWINSTREAM_FAILPOINT": failpoint}).wait(180)

    def good(self, arguments: list[str]) -> Ran:
        ran = self.run(arguments)
        assert ran.code == 0, ran.err
        return ran

    def result(self) -> list[tuple[str, ...]]:
        rows = list(csv.reader(io.StringIO(self.good(["read", "page_views"]).out)))
        return sorted(tuple(row) for row in rows[1:])


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, connect: str) -> dict[str, Path]:
    """Homes as the scenes need them, each made once and copied for every failpoint."""
    root = tmp_path_factory.mktemp("scenes")
    homes: dict[str, Path] = {}
    first = Stage(Home.make(root / "home", None), connect)
    first.home.generate("page_views", 1_500, events_per_file=150, late=0.1, poison=0.01, rate=0.5)
    homes[""] = root / "start"
    shutil.copytree(first.home.folder, homes[""])
    done = ""
    for name, command in (("drained", DRAIN), ("folded", FOLD)):
        first.good(command)
        done = f"{done} {name}".strip()
        homes[done] = root / name
        shutil.copytree(first.home.folder, homes[done])
    return homes


def start(prepared: dict[str, Path], before: list[list[str]], folder: Path, url: str) -> Stage:
    names = ["drained", "folded"][: len(before)]
    shutil.copytree(prepared[" ".join(names)], folder, dirs_exist_ok=True)
    return Stage(Home(folder, None, folder / "pipelines"), url)


@pytest.mark.parametrize("point", [f"{step}:{side}" for step in SCENES for side in ("before", "after")])
def test_killed_there_and_started_again_the_result_is_the_truth(
    point: str, prepared: dict[str, Path], tmp_path: Path, connect: str
) -> None:
    before, command = SCENES[point.rpartition(":")[0]]
    stage = start(prepared, before, tmp_path / "home", connect)
    killed = stage.run(command, point)
    assert killed.code == SIGKILL, f"{point} was not reached: exit code {killed.code}\n{killed.err}"
    stage.good(command)
    stage.good(DRAIN)
    expected = stage.home.truth("page_views", "side")
    assert stage.result() == sorted(tuple(row) for row in expected.rows)
    assert len(expected.per_txid) >= 5
