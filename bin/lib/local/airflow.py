"""Airflow's parts as processes of this machine, as docker-compose.yaml has them, small enough for a laptop."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bin.lib.local.processes import spawn, tail
from bin.lib.local.rest import Rest
from bin.lib.local.state import State
from twinstream.errors import EnvironmentMissing

START_SECONDS = 180.0
PARTS = {
    "api-server": ("api-server",),
    # The logs are read from the folder: no server for them, which would listen on every address.
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
    "triggerer": ("triggerer", "--skip-serve-logs"),
}
SMALL = {
    "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
    "AIRFLOW__CORE__PARALLELISM": "3",
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    # A task follows another at once: it waits for the scheduler half as long as this, by default half a second.
    "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
    "AIRFLOW__API__HOST": "127.0.0.1",
    "AIRFLOW__API__WORKERS": "1",
    "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
    "AIRFLOW__TRIGGERER__CAPACITY": "20",
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
}


@dataclass(frozen=True)
class Airflow:
    """One Airflow in `home`, with this checkout's DAGs and plugin."""

    root: Path
    home: Path
    port: int
    password: str = field(repr=False)
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What its processes get besides: connections, the database, Twinstream's own settings."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, state: State) -> Rest:
        """Makes the database, starts all parts and returns when each of them shows that it is there."""
        self.home.mkdir(parents=True, exist_ok=True)
        passwords = self.home / "passwords.json"
        passwords.touch(mode=0o600)
        passwords.write_text(json.dumps({"admin": self.password}) + "\n")
        migration = state.start("migration", partial(self._run, "migration", ("db", "migrate")))
        if migration.wait() != 0:
            raise self._failed("migration")
        running = {name: state.start(name, partial(self._run, name, command)) for name, command in PARTS.items()}
        return self._wait(running)

    def log(self, part: str) -> Path:
        return self.home / f"{part}.log"

    def _run(self, name: str, command: tuple[str, ...]) -> subprocess.Popen[bytes]:
        self.log(name).unlink(missing_ok=True)
        program = [sys.executable, "-m", "airflow", *command]
        return spawn(program, self.log(name), self._environment(), self.home)

    def _environment(self) -> dict[str, str]:
        kept = ("HOME", "LANG", "LC_ALL", "JAVA_HOME", "TMPDIR", "TZ", "JAVA_TOOL_OPTIONS")
        return {
            **{name: os.environ[name] for name in kept if name in os.environ},
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))),
            **SMALL,
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__BASE_URL": self.address,
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.address}/execution/",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self.home / "passwords.json"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.root / "dags"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(self.root / "plugins"),
            **self.settings,
        }

    def _wait(self, running: Mapping[str, subprocess.Popen[bytes]]) -> Rest:
        rest = Rest(self.address, "admin", self.password)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            for name, process in running.items():
                if process.poll() is not None:
                    raise self._failed(name)
            if rest.is_healthy():
                return rest
            time.sleep(0.5)
        raise EnvironmentMissing(
            f"Airflow was not ready after {START_SECONDS:g} s.", next_step=f"The logs of its parts are in {self.home}."
        )

    def _failed(self, part: str) -> EnvironmentMissing:
        return EnvironmentMissing(
            f"Airflow's {part} ended while starting: {tail(self.log(part))}",
            next_step=f"Its log is {self.log(part)}.",
        )
