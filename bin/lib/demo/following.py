"""Following a DAG run to its end: one line whenever a task of it gets on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bin.lib.demo.telling import say
from bin.lib.local.rest import DONE, Rest
from twinstream.errors import EnvironmentMissing

TELLING = ("running", "success", "failed", "skipped", "upstream_failed", "up_for_retry", "awaiting_input")
RUN_SECONDS = 600.0
STARTED_BY = {"manual": "by request", "scheduled": "by its schedule", "asset_triggered": "by new data"}


def follow(rest: Rest, dag: str, run: str, asked: Callable[[str], None] | None = None) -> dict[str, Any]:
    """The run when it has ended. `asked` is called with each task that waits for a person."""
    seen: set[tuple[str, str, int]] = set()
    deadline = time.monotonic() + RUN_SECONDS
    while time.monotonic() < deadline:
        found = rest.run(dag, run)
        for task in rest.tasks(dag, run):
            step = (task["task_id"], task["state"], task["try_number"])
            if task["state"] not in TELLING or step in seen:
                continue
            seen.add(step)
            say(f"{dag:<24} {task['task_id']:<22} {task['state'].replace('_', ' ')}{_took(task)}")
            if task["state"] == "awaiting_input" and asked is not None:
                asked(task["task_id"])
        if found["state"] in DONE:
            say(f"{dag:<24} {'':<22} {found['state']}{': ' + found['note'] if found.get('note') else ''}")
            return found
        time.sleep(1.0)
    raise EnvironmentMissing(
        f"{dag} had not ended after {RUN_SECONDS:g} s.", next_step="Airflow's page and logs show where it is."
    )


def follow_all(rest: Rest, dag: str) -> bool:
    """Follows whatever runs a DAG has until none is left, oldest first; whether all of them succeeded."""
    ends = []
    while open_runs := [run for run in rest.runs(dag) if run["state"] not in DONE]:
        run = next((run for run in open_runs if run["state"] == "running"), None)
        if run is None:
            time.sleep(0.5)
            continue
        say(f"{dag:<24} started {STARTED_BY.get(run['run_type'], 'by ' + run['run_type'])}")
        ends.append(follow(rest, dag, run["dag_run_id"])["state"])
        if ends[-1] != "success":
            explain(rest, dag, run["dag_run_id"])
    return set(ends) == {"success"}


def wait_for_run(rest: Rest, dag: str, known: set[str], seconds: float = 60.0) -> str:
    """The run that something other than us starts: an asset, or another DAG."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for run in rest.runs(dag):
            if run["dag_run_id"] not in known:
                return str(run["dag_run_id"])
        time.sleep(0.5)
    raise EnvironmentMissing(f"No run of {dag} was started within {seconds:g} s.", next_step="Look at Airflow's page.")


def runs_of(rest: Rest, dag: str) -> set[str]:
    """The runs there are so far."""
    return {run["dag_run_id"] for run in rest.runs(dag)}


def explain(rest: Rest, dag: str, run: str) -> None:
    """What went wrong in the tasks that failed."""
    for task in rest.tasks(dag, run):
        if task["state"] == "failed":
            for line in rest.errors(dag, run, task["task_id"], task["try_number"]):
                say(f"{task['task_id']}: {line}")


def _took(task: dict[str, Any]) -> str:
    return f" ({task['duration']:.1f} s)" if task["state"] in DONE and task["duration"] else ""
