"""bin/cluster: what it starts is a deployment, and nothing of it stays when it is stopped, interrupted or broken."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from bin.lib.local.processes import Started, stop
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
    yield from a_home()


@pytest.fixture(scope="module")
def shared() -> Iterator[Path]:
    """One home for the tests that use a cluster: what is up stays up from one to the next."""
    yield from a_home()


def a_home() -> Iterator[Path]:
    """Where also the user that root runs PostgreSQL as may go."""
    folder = Path(tempfile.mkdtemp(prefix="twinstream-cluster-"))
    folder.chmod(0o755)
    yield folder
    cluster(folder, "stop")
    shutil.rmtree(folder, ignore_errors=True)


def test_a_drain_on_the_cluster_is_the_truth(shared: Path) -> None:
    settings = started(shared)
    assert (shared / "cluster.json").stat().st_mode & 0o777 == 0o600
    made = ClusterHome.make(shared / "work", None)
    assert isinstance(made, ClusterHome)
    made.exported = {**settings, "TWINSTREAM_HOME": str(made.folder)}
    made.generate("page_views", 6_000, late=0.02, poison=0.002, events_per_file=1_000, rate=10.0)
    drained = made.twinstream("drain", "page_views", "--batch-records", "2000", "--json")
    assert json.loads(drained.stdout)["frontier"] == 3
    assert_true(made, "page_views", "side")
    assert not (made.folder / "ledger.db").exists()
    assert cores(shared)[-2:] == [2, 2]


def test_the_engine_reaches_the_executors_as_a_file_of_its_own(shared: Path) -> None:
    program = """
from pyspark.sql import functions as F
from twinstream.settings import Settings
from twinstream.spark import open_session

def place(_):
    import twinstream
    return twinstream.__file__

spark = open_session(Settings.from_env(), "shipping")
rows = spark.range(8, numPartitions=4).select(F.udf(place, "string")("id")).distinct().collect()
print(*(row[0] for row in rows))
"""
    env = environment(shared, TWINSTREAM_JARS=str(ROOT / ".jars")) | started(shared)
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    places = done.stdout.split()
    assert places
    assert all(place.endswith(".zip/twinstream/__init__.py") for place in places), places


def test_who_does_not_know_the_secret_is_turned_away(shared: Path) -> None:
    settings = started(shared) | {"SPARK_CONF_DIR": str(shared)}
    env = environment(shared, TWINSTREAM_JARS=str(ROOT / ".jars")) | settings
    program = (
        "from twinstream.settings import Settings\nfrom twinstream.spark import open_session\n"
        "open_session(Settings.from_env(), 'stranger').range(8).count()"
    )
    before, log = cores(shared), shared / "cluster" / "spark" / "master.log"
    stranger = subprocess.Popen([sys.executable, "-c", program], env=env, start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while "SASL" not in log.read_text() and time.monotonic() < deadline:
            assert stranger.poll() is None
            time.sleep(0.2)
        assert "Expected SaslMessage" in log.read_text()
        assert cores(shared) == before
    finally:
        stop(Started.of("stranger", stranger), seconds=5)
        stranger.wait()


def test_no_secret_is_on_a_command_line(shared: Path) -> None:
    settings = started(shared, "--connect")
    commands = " ".join(" ".join(words) for words in command_lines())
    assert settings["SPARK_CONF_DIR"] in commands
    assert len(secrets_of(shared)) == 5
    assert not [secret for secret in secrets_of(shared) if secret in commands]


def test_a_lost_part_is_started_again_and_the_ledger_is_still_there(shared: Path) -> None:
    with psycopg.connect(started(shared)["TWINSTREAM_LEDGER_URL"]) as connection:
        connection.execute("create table kept (x int)")
    psutil.Process(pid_of(cluster(shared, "status").stderr, "worker-2")).kill()
    status = cluster(shared, "status")
    assert status.returncode == 1
    assert "worker-2  is gone" in status.stderr
    with psycopg.connect(started(shared)["TWINSTREAM_LEDGER_URL"]) as connection:
        assert connection.execute("select count(*) from kept").fetchone() == (0,)


def test_a_second_start_changes_nothing_and_a_stop_leaves_nothing(shared: Path) -> None:
    settings = started(shared)
    assert started(shared) == settings
    stopped = cluster(shared, "stop")
    assert stopped.stderr.strip() == "Stopped: postgres, master, worker-1, worker-2."
    assert left_over(shared) == []
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(settings["TWINSTREAM_LEDGER_URL"], connect_timeout=2)
    assert cluster(shared, "status").returncode == 1
    assert cluster(shared, "stop").stderr.strip() == "Nothing was running."


def test_an_interrupted_start_leaves_nothing(home: Path) -> None:
    command = [str(ROOT / "bin" / "cluster"), "start"]
    process = subprocess.Popen(command, env=environment(home), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if "PostgreSQL answers" in line:
            process.send_signal(signal.SIGINT)
            break
    assert "is stopped again" in process.stderr.read()
    assert process.wait(60) in (130, -signal.SIGINT)  # to a shell both are 130
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


def started(home: Path, *options: str) -> dict[str, str]:
    """The settings of the cluster in this home, which is up after this."""
    done = cluster(home, "start", *options)
    assert done.returncode == 0, done.stderr
    return exports(done.stdout)


def cores(home: Path) -> list[int]:
    """How many cores each application has that the master knows of."""
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
