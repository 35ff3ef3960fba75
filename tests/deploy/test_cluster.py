"""bin/cluster: what it starts is a deployment, and nothing of it stays when it is stopped, interrupted or broken."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.deploy.cluster import (
    ROOT,
    ClusterHome,
    cluster,
    environment,
    exports,
    left_over,
    pid_of,
    secrets_of,
)
from tests.e2e.home import assert_true


@pytest.fixture
def home() -> Iterator[Path]:
    """Where also the user that root runs PostgreSQL as may go."""
    folder = Path(tempfile.mkdtemp(prefix="twinstream-cluster-"))
    folder.chmod(0o755)
    yield folder
    cluster(folder, "stop")
    shutil.rmtree(folder, ignore_errors=True)


def test_a_drain_on_the_cluster_is_the_truth_and_a_stop_leaves_nothing(home: Path) -> None:
    started = cluster(home, "start")
    assert started.returncode == 0, started.stderr
    assert (home / "cluster.json").stat().st_mode & 0o777 == 0o600
    settings = exports(started.stdout)
    made = ClusterHome.make(home / "work", None)
    assert isinstance(made, ClusterHome)
    made.exported = {**settings, "TWINSTREAM_HOME": str(made.folder)}

    made.generate("page_views", 6_000, late=0.02, poison=0.002, events_per_file=1_000, rate=10.0)
    drained = made.twinstream("drain", "page_views", "--batch-records", "2000", "--json")
    assert json.loads(drained.stdout)["frontier"] == 3
    assert_true(made, "page_views", "side")
    assert not (made.folder / "ledger.db").exists()
    assert executors(home) == [2, 2]

    again = cluster(home, "start")
    assert "up already" in again.stderr
    assert exports(again.stdout) == settings
    commands = " ".join(" ".join(words) for words in command_lines())
    assert not [secret for secret in secrets_of(home) if secret in commands]

    stopped = cluster(home, "stop")
    assert stopped.stderr.strip() == "Stopped: postgres, master, worker-1, worker-2."
    assert left_over(home) == []
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(settings["TWINSTREAM_LEDGER_URL"], connect_timeout=2)
    assert cluster(home, "status").returncode == 1


def test_the_ledger_is_still_there_after_a_stop_and_a_lost_part_is_started_again(home: Path) -> None:
    first = exports(cluster(home, "start").stdout)
    with psycopg.connect(first["TWINSTREAM_LEDGER_URL"]) as connection:
        connection.execute("create table kept (x int)")
    psutil.Process(pid_of(cluster(home, "status").stderr, "worker-2")).kill()
    status = cluster(home, "status")
    assert status.returncode == 1
    assert "worker-2  is gone" in status.stderr
    second = cluster(home, "start")
    assert second.returncode == 0, second.stderr
    with psycopg.connect(exports(second.stdout)["TWINSTREAM_LEDGER_URL"]) as connection:
        assert connection.execute("select count(*) from kept").fetchone() == (0,)


def test_the_engine_reaches_the_executors_of_the_cluster_as_a_file_of_its_own(home: Path) -> None:
    settings = exports(cluster(home, "start").stdout)
    program = """
from pyspark.sql import functions as F
from twinstream.settings import Settings
from twinstream.spark import open_session

@F.udf("string")
def place(_):
    import twinstream
    return twinstream.__file__

rows = open_session(Settings.from_env(), "shipping").range(8, numPartitions=4).select(place("id")).distinct().collect()
print(*(row[0] for row in rows), sep="\\n")
"""
    command = [sys.executable, "-c", program]
    env = environment(home, **settings, TWINSTREAM_JARS=str(ROOT / ".jars"))
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    places = done.stdout.split()
    assert places
    assert all(".zip/twinstream/__init__.py" in place and str(home) in place for place in places), places


def test_an_interrupted_start_leaves_nothing(home: Path) -> None:
    command = [str(ROOT / "bin" / "cluster"), "start"]
    process = subprocess.Popen(command, env=environment(home), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if "PostgreSQL answers" in line:
            process.send_signal(signal.SIGINT)
            break
    assert "is stopped again" in process.stderr.read()
    assert process.wait(60) == 130
    assert left_over(home) == []


def test_a_start_that_fails_half_way_says_why_and_leaves_nothing(home: Path) -> None:
    java = home / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho this java is broken\nexit 1\n")
    java.chmod(0o755)
    done = cluster(home, "start", JAVA_HOME=str(home / "java"))
    assert done.returncode == 2
    assert "PostgreSQL answers" in done.stderr
    assert "The Spark master ended with exit code" in done.stderr
    assert "this java is broken" in done.stderr
    assert "Traceback" not in done.stderr
    assert left_over(home) == []


def executors(home: Path) -> list[int]:
    """How many executors each application that the master knows of was given."""
    page = json.loads((home / "cluster.json").read_text())["addresses"]["master page"]
    with urllib.request.urlopen(f"{page}/json/", timeout=10) as answer:
        found = json.load(answer)
    return [application["cores"] for application in found["completedapps"] + found["activeapps"]]


def command_lines() -> Iterator[list[str]]:
    for process in psutil.process_iter():
        try:
            yield process.cmdline()
        except psutil.Error:
            continue
