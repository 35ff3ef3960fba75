"""A micro-batch DAG run with one new txid: through a warm Spark Connect server, and by spark-submit.

.venv/bin/python benchmarks/airflow_overhead.py [--runs 5]

Both on one Airflow, one after the other in turns, so that whatever else the machine does hits both alike. Its
scheduler is as Airflow has it by default, not as quick as the demo's.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bin.lib.local.airflow import Airflow  # noqa: E402
from bin.lib.local.processes import free_port, stop  # noqa: E402
from bin.lib.local.rest import DONE, Rest  # noqa: E402
from bin.lib.local.spark import Spark, write_defaults  # noqa: E402
from bin.lib.local.state import State  # noqa: E402

SCRATCH = ROOT / "benchmarks" / "scratch" / "airflow_overhead"
RESULTS = ROOT / "benchmarks" / "results"
JARS = ROOT / ".jars"
WAYS = {"warm": "Spark Connect, warm", "cold": "spark-submit"}
EVENTS = 1_000
LIMIT = 0.35
UNMEASURED = 3
"""Rounds before the measured ones: they make the tables, and a server that is warm has run this work before."""


def main() -> int:
    """Measures both ways in turns; exit code 1 if the warm one is not quick enough."""
    arguments = _arguments()
    shutil.rmtree(SCRATCH, ignore_errors=True)
    _write_definitions()
    state = State.load(SCRATCH / "state.json")
    try:
        rest = _start(state)
        times: dict[str, list[float]] = {way: [] for way in WAYS}
        for number in range(UNMEASURED + arguments.runs):
            for way in WAYS:
                _write_events(way, number)
                seconds = _run(rest, f"{way}__microbatch")
                times[way] += [seconds] if number >= UNMEASURED else []
    finally:
        stop(*state.processes, seconds=10.0)
    medians = {way: statistics.median(found) for way, found in times.items()}
    ratio = medians["warm"] / medians["cold"]
    lines = [
        f"One new txid of {EVENTS:,} records, from the start of the DAG run to its end, {arguments.runs} runs each "
        f"after {UNMEASURED} unmeasured ones.",
        "",
        "| way | median | fastest | slowest |",
        "| --- | ---: | ---: | ---: |",
        *(
            f"| {WAYS[way]} | {medians[way]:.1f} s | {min(times[way]):.1f} s | {max(times[way]):.1f} s |"
            for way in WAYS
        ),
        "",
        f"Warm against spark-submit: {ratio:.2f} (at most {LIMIT}).",
    ]
    text = "\n".join(lines)
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "airflow_overhead.md").write_text(text + "\n")
    shutil.rmtree(SCRATCH)
    return 0 if ratio <= LIMIT else 1


def _write_definitions() -> None:
    folder = SCRATCH / "pipelines"
    folder.mkdir(parents=True)
    text = (ROOT / "include" / "pipelines" / "page_views.py").read_text()
    head, _, _ = text.partition("    orchestration=")
    for way in WAYS:
        made = f'{head}    orchestration=Orchestration(spark="{way}", watch=False, retries=0),\n)\n'
        (folder / f"{way}.py").write_text(made.replace("page_views", way))


def _write_events(way: str, number: int) -> None:
    folder = SCRATCH / "home" / "data" / way
    folder.mkdir(parents=True, exist_ok=True)
    start = datetime.now(UTC) - timedelta(minutes=5)
    lines = [
        json.dumps(
            {"event_id": f"{number}-{one}", "page": f"/{one % 7}", "amount": f"{one}.25", "at": start.isoformat()}
        )
        for one in range(EVENTS)
    ]
    (folder / f".{number}.json").write_text("\n".join(lines) + "\n")
    (folder / f".{number}.json").rename(folder / f"{number}.json")


def _start(state: State) -> Rest:
    spark, port, token = Spark(SCRATCH / "spark"), free_port(), state.secret("connect")
    write_defaults(spark.conf, state.secret("spark"), JARS, {})
    server = state.start("connect", partial(spark.connect, "local[2]", port, token))
    settings = {
        "TWINSTREAM_HOME": str(SCRATCH / "home"),
        "TWINSTREAM_PIPELINES": str(SCRATCH / "pipelines"),
        "TWINSTREAM_JARS": str(JARS),
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "1",
        "AIRFLOW_CONN_WARM": json.dumps(
            {"conn_type": "spark_connect", "host": "sc://localhost", "port": port, "password": token}
        ),
        "AIRFLOW_CONN_COLD": json.dumps({"conn_type": "spark", "host": "local[2]"}),
    }
    rest = Airflow(ROOT, SCRATCH / "airflow", free_port(), state.secret("admin"), settings).start(state)
    spark.wait_for_connect(server, port)
    dags = {f"{way}__microbatch" for way in WAYS}
    rest.wait_for_dags(dags)
    for dag in dags:
        rest.unpause(dag)
    return rest


def _run(rest: Rest, dag: str) -> float:
    """Seconds from the start of a run to its end, by Airflow's own clock."""
    run = rest.trigger(dag)
    while (found := rest.run(dag, run))["state"] not in DONE:
        time.sleep(0.2)
    if found["state"] != "success":
        raise SystemExit(f"{dag} failed: {rest.log(dag, run, 'drain', 1)[-2000:]}")
    return (_moment(found["end_date"]) - _moment(found["start_date"])).total_seconds()


def _moment(text: Any) -> datetime:
    return datetime.fromisoformat(str(text))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
