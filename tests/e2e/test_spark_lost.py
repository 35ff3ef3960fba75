"""Spark dies in the middle of a drain: a clear error, and the next run goes on."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from tests.e2e.commands import clear
from tests.e2e.events import EACH, write_files
from tests.e2e.home import Home, assert_true
from tests.faults.processes import Command


def test_a_killed_jvm_is_a_clear_error_and_the_next_run_goes_on(tmp_path: Path, spark: Any) -> None:
    home = Home.make(tmp_path / "home", spark)
    write_files(home)
    environment = {
        "TWINSTREAM_HOME": str(home.folder),
        "TWINSTREAM_PIPELINES": str(home.pipelines),
        "TWINSTREAM_MASTER": "local[1]",
        "TWINSTREAM_GROUPS_IN_FLIGHT": "1",
        "TWINSTREAM_FAILPOINT": "sink.commit:after!stop",
    }
    drain = ["drain", "page_views", "--batch-records", str(EACH), "--group", "1", "--wait", "0", "--json"]
    command = Command(home.folder, drain, environment)
    wait_until_stopped(command.pid)
    for java in children(command.pid):
        os.kill(java, signal.SIGKILL)
    os.kill(command.pid, signal.SIGCONT)
    ran = command.wait(60)
    assert ran.code == 2, ran
    lines = [line for line in ran.err.splitlines() if "JAVA_TOOL_OPTIONS" not in line]
    error = clear("\n".join(lines), "SparkLost")
    assert "Spark stopped" in error["what"]
    assert ran.out == ""

    assert set(home.accounting("page_views")) == {1}
    home.drain("page_views")
    assert_true(home, "page_views", "side")
    assert set(home.accounting("page_views")) == {1, 2, 3}


def wait_until_stopped(pid: int) -> None:
    deadline = time.monotonic() + 120
    while state(pid) != "T":
        assert time.monotonic() < deadline, f"process {pid} was not stopped"
        time.sleep(0.1)


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            found.append(int(stat.parent.name))
    assert found, "no JVM was started"
    return found
