"""A real Airflow, booted once, with one pipeline for each scene so that no scene is in another one's way."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from bin.lib.local.airflow import PARTS, Airflow
from bin.lib.local.processes import free_port, stop
from bin.lib.local.rest import Rest
from bin.lib.local.state import State
from tests import truth
from tests.airflow.definitions import ROOT
from tests.airflow.processes import in_settings, with_argument
from tests.e2e.events import EACH, events, write_json
from tests.e2e.home import Home
from twinstream.ledger import Ledger
from twinstream.settings import Settings
from twinstream.transaction import Outcome

SECONDS = 300.0
SMALL = {
    "AIRFLOW__CORE__PARALLELISM": "4",
    # Other tests want these cores too.
    "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "20",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "3",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_SEC": "2",
    "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "2",
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "5",
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",
    "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "2",
}
DEFINITION = """
from pathlib import Path

from twinstream import (
    Aggregate, DeltaSink, FileSource, KafkaSource, Orchestration, Pipeline, Watermark, count, fixed, sum_
)

HERE = "{folder}"


def wait(rows):
    if Path(HERE, "slow").exists():
        rows.sparkSession.range(1).selectExpr("reflect('java.lang.Thread', 'sleep', bigint(300000))").collect()
    return None


pipeline = Pipeline(
    name="{name}",
    source={source}, schema="event_id string, page string, amount decimal(12,2), at timestamp"),
    record_id="event_id",
    event_time="at",
    prepare="select event_id, page, amount, at from events where page is not null",
    operator=Aggregate(by=["page"], window=fixed("1 minute"), measures={{"views": count(), "spend": sum_("amount")}}),
    watermark=Watermark(delay="10 minutes", late="side", max_future="1 hour"),
    sink=DeltaSink("tables/{name}"),
    batch_records={each},
    {gate}orchestration=Orchestration({orchestration}),
)
"""
NOTIFIER = """
from airflow.sdk import BaseNotifier


class ToFile(BaseNotifier):
    def __init__(self, path):
        super().__init__()
        self.path = path

    def notify(self, context):
        with open(self.path, "a") as file:
            file.write(context["dag"].dag_id + "\\n")
"""
GATED = "gate=wait,\n    "


@dataclass
class World:
    """Airflow, its REST API, the ledger, and the truth."""

    folder: Path
    spark: Any
    ledger_url: str
    airflow_url: str
    connect: str
    token: str
    spark_ui: str
    airflow: Airflow
    state: State
    rest: Rest
    broker: str
    """The address of the broker; a scene that is streamed has the topic of its name."""

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def write(self, name: str, first: int, count: int) -> None:
        """Files `first`, `first` + 1, … of page views for a pipeline: a txid each."""
        for number in range(first, first + count):
            target = self.home / "data" / name / f"{number:03}.json"
            scratch = target.with_name(f".{target.name}")
            write_json(scratch, events(number))
            scratch.rename(target)

    def slow(self, name: str, on: bool) -> None:
        """Makes every group of the pipeline wait on Spark, or no longer."""
        file = self.folder / "scenes" / name / "slow"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch() if on else file.unlink(missing_ok=True)

    def start(self, dag: str, conf: dict[str, Any] | None = None) -> str:
        self.rest.unpause(dag)
        return self.rest.trigger(dag, conf)

    def look_at_files(self, dag: str) -> None:
        """Has the DAG processor parse the DAG's file now, as it does from time to time by itself."""
        token = self.rest.call("GET", f"/dags/{dag}")["file_token"]
        self.rest.call("PUT", f"/parseDagFile/{token}")

    def ended(self, dag: str, run: str, seconds: float = SECONDS) -> str:
        """How the run ended."""
        return str(wait_for(lambda: _state(self.rest.run(dag, run), ("success", "failed")), seconds, f"{dag} {run}"))

    def run(self, dag: str, conf: dict[str, Any] | None = None, seconds: float = SECONDS) -> tuple[str, str]:
        """Runs a DAG to its end: the run and how it ended."""
        run = self.start(dag, conf)
        return run, self.ended(dag, run, seconds)

    def task(self, dag: str, run: str, task: str) -> dict[str, Any]:
        found: dict[str, Any] = self.rest.call("GET", f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}")
        return found

    def states(self, dag: str, run: str) -> dict[str, str]:
        return {task["task_id"]: task["state"] for task in self.rest.tasks(dag, run)}

    def task_reaches(self, dag: str, run: str, task: str, *states: str, seconds: float = SECONDS) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            found = self.task(dag, run, task)
            return found if found["state"] in states else None

        return dict(wait_for(look, seconds, f"{task} to be {' or '.join(states)}"))

    def asks(self, dag: str, run: str, task: str) -> bool:
        """Whether the task waits for a person, and the process that asked is gone.

        Airflow takes an answer that comes before that for a task that was lost, and fails it.
        """
        found = self.task(dag, run, task)
        return found["state"] == "awaiting_input" and not with_argument(found["id"])

    def result(self, dag: str, run: str, task: str) -> Any:
        path = f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/return_value"
        return self.rest.call("GET", path, deserialize=True)["value"]

    def log(self, dag: str, run: str, task: str, attempt: int = 1) -> str:
        return self.rest.log(dag, run, task, attempt)

    def clear(self, dag: str, run: str, *tasks: str) -> None:
        body = {"dry_run": False, "dag_run_id": run, "only_failed": False, "reset_dag_runs": True}
        self.rest.call("POST", f"/dags/{dag}/clearTaskInstances", body | ({"task_ids": list(tasks)} if tasks else {}))

    def settings(self) -> Settings:
        return Settings.from_env(
            {
                "TWINSTREAM_HOME": str(self.home),
                "TWINSTREAM_PIPELINES": str(self.folder / "pipelines"),
                "TWINSTREAM_LEDGER_URL": self.ledger_url,
                "TWINSTREAM_KAFKA_DEFAULT": self.broker,
            }
        )

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        opened = Ledger.open(self.ledger_url)
        try:
            yield opened
        finally:
            opened.close()

    def frontier(self, name: str) -> int:
        with self.ledger() as ledger:
            generation = ledger.generations.current(name)
            return generation.frontier if generation else 0

    def generation(self, name: str) -> int:
        """The number of the generation that readers see."""
        with self.ledger() as ledger:
            found = ledger.generations.current(name)
            return found.number if found else 0

    def notices(self) -> list[str]:
        """The DAGs of failed runs that the notifier was told of."""
        file = self.folder / "notices"
        return file.read_text().split() if file.exists() else []

    def at_work(self, name: str) -> list[int]:
        """Processes that work for a DAG of this pipeline."""
        return in_settings("TWINSTREAM_CONTEXT", f'"dag_id": "{name}__')

    def spark_jobs(self) -> list[str]:
        """What the Spark Connect server is working on."""
        (application,) = self.ask_spark("applications")
        jobs = self.ask_spark(f"applications/{application['id']}/jobs?status=running")
        return [job["name"] for job in jobs]

    def ask_spark(self, path: str) -> Any:
        return httpx.get(f"{self.spark_ui}/api/v1/{path}", timeout=60).json()

    def restart_scheduler(self) -> None:
        """Kills the scheduler with all tasks that it started, and starts another one."""
        old = next(process for process in self.state.processes if process.name == "scheduler")
        for member in old.family():
            member.kill()
        self.state.processes.remove(old)
        self.state.start("scheduler", lambda: self.airflow._run("scheduler", PARTS["scheduler"]))

    def assert_true(self, name: str, txids: int) -> None:
        """The result is the truth, nothing was committed twice, and nobody is at work any more."""
        home = _Home(self.home, self.spark, self.folder / "pipelines", self.settings())
        expected = truth.truth_page_views(home.ranges(name), "side")
        assert self.frontier(name) == txids
        assert home.read(name) == sorted(tuple(row) for row in expected.rows)
        assert home.accounting(name) == {int(txid): dict(value) for txid, value in expected.per_txid.items()}
        with self.ledger() as ledger:
            generation = ledger.generations.current(name)
            assert generation is not None
            made = ledger.attempts.asked_by(generation.id, {})
        committed = [txid for a in made if a.outcome is Outcome.COMMITTED for txid in range(a.first, a.last + 1)]
        assert sorted(committed) == list(range(1, txids + 1))
        wait_for(lambda: not self.at_work(name), 20, f"nobody to be at work for {name}")


@dataclass
class _Home(Home):
    """Looks into the world's home, with the world's ledger."""

    known: Settings

    @property
    def settings(self) -> Settings:
        return self.known


def wait_for(look: Callable[[], Any], seconds: float, what: str) -> Any:
    """What `look` gives as soon as it gives something."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}"
        time.sleep(0.25)
    return found


def _state(run: dict[str, Any], wanted: tuple[str, ...]) -> str | None:
    return run["state"] if run["state"] in wanted else None


@contextmanager
def booted(
    folder: Path,
    scenes: dict[str, str],
    spark: Any,
    databases: tuple[str, str],
    connect: str,
    token: str,
    spark_ui: str,
    broker: str,
) -> Iterator[World]:
    """A world with these scenes (a name and its orchestration each); nothing of it runs after the block.

    `databases` are the ledger's and Airflow's own.
    """
    ledger_url, airflow_url = databases
    pipelines = folder / "pipelines"
    pipelines.mkdir(parents=True)
    for name, orchestration in scenes.items():
        text = DEFINITION.format(
            name=name, folder=folder / "scenes" / name, each=EACH, orchestration=orchestration.format(folder=folder),
            source=f"KafkaSource(topics={name!r}" if name == "streamed" else f'FileSource("data/{name}", format="json"',
            gate=GATED if "timeout=" in orchestration or name.startswith("killed") else "",
        )  # fmt: skip
        (pipelines / f"{name}.py").write_text(text)
        (folder / "home" / "data" / name).mkdir(parents=True)
    (pipelines / "_notifiers.py").write_text(NOTIFIER)
    server = urlsplit(connect)
    warm = {"conn_type": "spark_connect", "host": "sc://localhost", "port": server.port, "password": token}
    settings = {
        **SMALL,
        "TWINSTREAM_HOME": str(folder / "home"),
        "TWINSTREAM_PIPELINES": str(pipelines),
        "TWINSTREAM_JARS": os.environ["TWINSTREAM_JARS"],
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": airflow_url,
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": airflow_url,
        "AIRFLOW_CONN_TWINSTREAM_LEDGER": ledger_url.replace("postgresql+psycopg", "postgresql"),
        "AIRFLOW_CONN_WARM": json.dumps(warm | {"extra": {"spark_ui": spark_ui}}),
        "AIRFLOW_CONN_DEAD": json.dumps({"conn_type": "spark", "host": "spark://127.0.0.1", "port": 9}),
        "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": broker}}),
        "AIRFLOW_CONN_COLD": json.dumps({"conn_type": "spark", "host": "local[2]"}),
    }
    state = State.load(folder / "state.json")
    airflow = Airflow(ROOT, folder / "airflow", free_port(), state.secret("admin"), settings)
    try:
        rest = airflow.start(state)
        world = World(folder, spark, ledger_url, airflow_url, connect, token, spark_ui, airflow, state, rest, broker)
        families = ("microbatch", "reconcile", "repair")
        rest.wait_for_dags({f"{name}__{family}" for name in scenes for family in families} | {"streamed__continuous"})
        yield world
    finally:
        stop(*state.processes, seconds=10.0)
