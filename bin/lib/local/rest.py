"""Airflow by its REST API."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx

from twinstream.errors import EnvironmentMissing

DONE = ("success", "failed")
AWAY_SECONDS = 60.0
"""So long a server that does not answer is asked again: it may be on its way up."""


class Rest:
    """A user of one Airflow. The token is fetched when it is needed first."""

    def __init__(self, address: str, user: str, password: str) -> None:
        self._http = httpx.Client(base_url=address, timeout=30.0)
        self._login = {"username": user, "password": password}
        self.watch: Callable[[], None] = lambda: None
        """Called before every request."""

    def is_healthy(self) -> bool:
        """Whether scheduler, DAG processor, triggerer and database all are."""
        try:
            found = self._http.get("/api/v2/monitor/health").json()
        except (httpx.HTTPError, ValueError):
            return False
        return all((found.get(part) or {}).get("status") == "healthy" for part in _PARTS)

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """The answer to one request; an error of Airflow's in its own words."""
        if "Authorization" not in self._http.headers:
            token = self._answer(self._request("POST", "/auth/token", json=self._login))["access_token"]
            self._http.headers["Authorization"] = f"Bearer {token}"
        return self._answer(self._request(method, f"/api/v2{path}", json=body, params=query))

    def dags(self) -> set[str]:
        found: list[str] = []  # a DAG that comes meanwhile can push another one onto the next page, once more
        while page := self.call("GET", "/dags", limit=100, offset=len(found), order_by="dag_id")["dags"]:
            found += [dag["dag_id"] for dag in page]
        return set(found)

    def import_errors(self) -> list[str]:
        """What is wrong with files in dags/ and plugins/."""
        found = self.call("GET", "/importErrors")["import_errors"] + self._plugin_errors()
        return [str(error) for error in found]

    def unpause(self, dag: str) -> None:
        self.call("PATCH", f"/dags/{dag}", {"is_paused": False})

    def trigger(self, dag: str, conf: dict[str, Any] | None = None) -> str:
        """Starts a run and returns its id."""
        run: str = self.call("POST", f"/dags/{dag}/dagRuns", {"logical_date": None, "conf": conf or {}})["dag_run_id"]
        return run

    def runs(self, dag: str) -> list[dict[str, Any]]:
        """The newest first."""
        found: list[dict[str, Any]] = self.call("GET", f"/dags/{dag}/dagRuns", order_by="-run_after", limit=20)[
            "dag_runs"
        ]
        return found

    def run(self, dag: str, run: str) -> dict[str, Any]:
        found: dict[str, Any] = self.call("GET", f"/dags/{dag}/dagRuns/{run}")
        return found

    def tasks(self, dag: str, run: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.call("GET", f"/dags/{dag}/dagRuns/{run}/taskInstances")["task_instances"]
        return sorted(found, key=lambda task: (task["start_date"] or "~", task["task_id"]))

    def approve(self, dag: str, run: str, task: str) -> None:
        path = f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}/-1/hitlDetails"
        self.call("PATCH", path, {"chosen_options": ["Approve"], "params_input": {}})

    def log(self, dag: str, run: str, task: str, attempt: int) -> str:
        """What a task said, as text."""
        return "\n".join(self._told(line) for line in self._lines(dag, run, task, attempt))

    def errors(self, dag: str, run: str, task: str, attempt: int) -> list[str]:
        """What a try of a task logged as errors, each with the exceptions behind it."""
        lines = self._lines(dag, run, task, attempt)
        return [
            self._told(line) for line in lines if isinstance(line, dict) and line.get("level") in ("error", "critical")
        ]

    def wait_for_dags(self, wanted: set[str], seconds: float = 120.0) -> None:
        """Returns when the DAG processor has been through the files."""
        deadline = time.monotonic() + seconds
        while not wanted <= self.dags():
            if time.monotonic() > deadline:
                raise EnvironmentMissing(
                    f"Airflow does not know {', '.join(sorted(wanted - self.dags()))}: {self.import_errors()}",
                    next_step="Mend what it says about the files in dags/ and plugins/.",
                )
            time.sleep(0.5)

    def _lines(self, dag: str, run: str, task: str, attempt: int) -> list[Any]:
        path = f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}/logs/{attempt}"
        found: list[Any] = self.call("GET", path, full_content=True)["content"]
        return found

    @staticmethod
    def _told(line: Any) -> str:
        if not isinstance(line, dict):
            return str(line)
        causes = [f"{one['exc_type']}: {one['exc_value']}" for one in line.get("error_detail") or []]
        return " ".join([str(line.get("event", line)), *causes])

    def _plugin_errors(self) -> list[Any]:
        found: list[Any] = self.call("GET", "/plugins/importErrors")["import_errors"]
        return found

    def _request(self, method: str, path: str, **given: Any) -> httpx.Response:
        """One request. It is made again where the server was not there to hear it, and, if it only asks, to answer."""
        again = httpx.TransportError if method == "GET" else httpx.ConnectError
        deadline = time.monotonic() + AWAY_SECONDS
        while True:
            self.watch()
            try:
                return self._http.request(method, path, **given)
            except httpx.TransportError as error:
                if not isinstance(error, again) or time.monotonic() > deadline:
                    raise EnvironmentMissing(
                        f"Airflow did not answer {method} {path}: {error}",
                        next_step="The logs of its parts tell more.",
                    ) from error
                time.sleep(0.5)

    def _answer(self, response: httpx.Response) -> Any:
        if response.is_error:
            raise EnvironmentMissing(
                f"Airflow refused {response.request.method} {response.request.url.path}: {response.text[:300]}",
                next_step="The logs of its parts tell more.",
            )
        return response.json()


_PARTS = ("metadatabase", "scheduler", "dag_processor", "triggerer")
