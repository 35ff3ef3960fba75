"""The demo by Airflow leaves nothing running, also when it is stopped while it starts, or cannot start."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.deploy.cluster import ROOT, environment, left_over

PARTS = {"connect", "api-server", "scheduler", "dag-processor", "triggerer"}


def demo(home: Path, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bin.lib.demo", "--once", "--home", str(home)],
        cwd=ROOT,
        env=environment(home, TWINSTREAM_JARS=str(ROOT / ".jars"), **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def running(home: Path) -> set[str]:
    state = home / "demo.json"
    return {process["name"] for process in json.loads(state.read_text())["processes"]} if state.exists() else set()


def test_an_interrupt_while_airflow_starts_ends_all_of_it(tmp_path: Path) -> None:
    process = demo(tmp_path)
    try:
        while not running(tmp_path) >= PARTS:
            assert process.poll() is None
            time.sleep(0.2)
        assert left_over(tmp_path) != []
    finally:
        process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=120)[0]
    # To a shell both are 130. Python ends itself by the signal if it was within an exec(), as of a lazy import.
    assert process.returncode in (130, -signal.SIGINT), said
    assert "nothing of it is running any more" in said
    assert left_over(tmp_path) == []


def test_a_part_that_cannot_start_is_told_and_ends_the_others(tmp_path: Path) -> None:
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho this java is broken\nexit 1\n")
    java.chmod(0o755)
    home = tmp_path / "home"
    process = demo(home, JAVA_HOME=str(tmp_path / "java"))
    said = process.communicate(timeout=300)[0]
    assert process.returncode == 1, said
    assert "The Spark Connect server ended with exit code" in said
    assert "this java is broken" in said
    assert "Traceback" not in said
    assert left_over(home) == []
