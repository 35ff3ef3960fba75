"""The DAGs on a Spark cluster of two workers, with Airflow's database and the ledger on PostgreSQL."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bin.lib.local.airflow import Airflow
from bin.lib.local.processes import free_port, stop
from bin.lib.local.rest import DONE, Rest
from bin.lib.local.state import State
from tests.deploy.cluster import ROOT, ClusterHome, cluster, exports, left_over
from tests.e2e.home import assert_true

RUN_SECONDS = 600.0


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="twinstream-airflow-"))
    made.chmod(0o755)
    yield made
    cluster(made, "stop")
    shutil.rmtree(made, ignore_errors=True)


def ended(rest: Rest, dag: str, run: str) -> dict[str, Any]:
    deadline = time.monotonic() + RUN_SECONDS
    while (found := rest.run(dag, run))["state"] not in DONE:
        assert time.monotonic() < deadline, rest.tasks(dag, run)
        time.sleep(1.0)
    return found


def errors(rest: Rest, dag: str, run: str) -> list[str]:
    """Why tasks of the run failed."""
    failed = [task for task in rest.tasks(dag, run) if task["state"] == "failed"]
    return [error for task in failed for error in rest.errors(dag, run, task["task_id"], task["try_number"])]


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_stream_recomputation_and_verdict_are_those_of_one_machine(folder: Path) -> None:
    started = cluster(folder, "start")
    assert started.returncode == 0, started.stderr
    home = ClusterHome.make(folder / "work", None)
    assert isinstance(home, ClusterHome)
    home.exported = {**exports(started.stdout), "TWINSTREAM_HOME": str(home.folder)}
    home.change("page_views", "batch_records=100_000", "batch_records=2_000")
    home.generate("page_views", 6_000, late=0.02, poison=0.002, events_per_file=1_000, rate=10.0)
    settings = {name: value for name, value in home.exported.items() if name != "TWINSTREAM_MASTER"}
    settings |= {"TWINSTREAM_PIPELINES": str(home.pipelines), "TWINSTREAM_JARS": str(ROOT / ".jars")}
    del settings["TWINSTREAM_LEDGER_URL"]
    airflow = Airflow(ROOT, folder / "airflow", free_port(), "a password", settings)
    state = State(folder / "airflow.json")
    try:
        rest = airflow.start(state)
        rest.wait_for_dags({"page_views__microbatch", "page_views__recompute", "page_views__reconcile"})
        assert rest.import_errors() == []
        for dag in ("page_views__microbatch", "page_views__recompute", "page_views__reconcile"):
            rest.unpause(dag)
            run = ended(rest, dag, rest.trigger(dag))
            assert run["state"] == "success", errors(rest, dag, run["dag_run_id"])
        assert run["note"].startswith("Equal")
        assert_true(home, "page_views", "side")
        with psycopg.connect(settings["AIRFLOW_CONN_TWINSTREAM_LEDGER"]) as connection:
            frontiers = connection.execute("select pipeline, frontier from generations").fetchall()
        assert frontiers == [("page_views", 3)]
    finally:
        stop(*state.processes)
    cluster(folder, "stop")
    assert left_over(folder) == []
