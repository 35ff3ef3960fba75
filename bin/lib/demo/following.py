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
STARTED_BY = {
    "manual": "was asked for",
    "scheduled": "was due",
    "asset_triggered": "was woken by data",
    "operator_triggered": "was called for",
}


class _Teller:
    """Tells what is new about runs; each step of a task once."""

    def __init__(self, rest: Rest, asked: Callable[[str], None] | None = None) -> None:
        self._rest = rest
        self._asked = asked
        self._told: set[tuple[Any, ...]] = set()

    def tell(self, run: dict[str, Any]) -> bool:
        """Whether the run has ended."""
        dag, name = run["dag_id"], run["dag_run_id"]
        if run["state"] != "queued" and self._is_new(dag, name):
            say(f"{dag:<24} {STARTED_BY.get(run['run_type'], run['run_type'])}")
        for task in self._rest.tasks(dag, name):
            state = task["state"]
            if state in TELLING and self._is_new(dag, name, task["task_id"], state, task["try_number"]):
                say(f"{dag:<24} {task['task_id']:<20} {state.replace('_', ' ')}{_took(task)}")
                if state == "awaiting_input" and self._asked is not None:
                    self._asked(task["task_id"])
        ended = run["state"] in DONE
        if ended and self._is_new(dag, name, run["state"]):
            say(f"{dag:<24} {run['state']}{': ' + run['note'] if run.get('note') else ''}")
        return ended

    def _is_new(self, *step: Any) -> bool:
        new = step not in self._told
        self._told.add(step)
        return new


def follow(rest: Rest, dag: str, run: str, asked: Callable[[str], None] | None = None) -> dict[str, Any]:
    """The run when it has ended. `asked` is called with each task that waits for a person."""
    teller = _Teller(rest, asked)
    deadline = time.monotonic() + RUN_SECONDS
    while not teller.tell(found := rest.run(dag, run)):
        _require_time(deadline, dag)
    return found


def follow_all(rest: Rest, *dags: str) -> bool:
    """Follows whatever runs the DAGs have until none is left; whether all of them succeeded."""
    teller = _Teller(rest)
    deadline = time.monotonic() + RUN_SECONDS
    while True:
        runs = [run for dag in dags for run in reversed(rest.runs(dag))]
        ends = [teller.tell(run) for run in runs]
        if all(ends):
            break
        _require_time(deadline, " and ".join(dags))
    for run in runs:
        explain(rest, run["dag_id"], run["dag_run_id"])
    return all(run["state"] == "success" for run in runs)


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


def _require_time(deadline: float, what: str) -> None:
    if time.monotonic() > deadline:
        raise EnvironmentMissing(
            f"{what} had not ended after {RUN_SECONDS:g} s.", next_step="Airflow's page and logs show where it is."
        )
    time.sleep(1.0)


def _took(task: dict[str, Any]) -> str:
    return f" ({task['duration']:.1f} s)" if task["state"] in DONE and task["duration"] else ""
