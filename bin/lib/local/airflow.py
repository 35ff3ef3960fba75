"""Airflow's parts as processes of this machine, as docker-compose.yaml has them, small enough for a laptop."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bin.lib.local.processes import spawn, stop, tail
from bin.lib.local.rest import Rest
from bin.lib.local.state import State
from twinstream.errors import EnvironmentMissing

START_SECONDS = 180.0
BUSY_SECONDS = 60
"""How long a part waits for SQLite: a scheduler that finds it locked for 5 s, Python's default, ends."""
RESTARTS = 3
"""So often a part that has ended is started again."""
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
    # What a scheduler that has ended was running is run again soon.
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "20",
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
        for old in self.home.glob("*.log"):
            old.unlink()
        passwords = self.home / "passwords.json"
        passwords.touch(mode=0o600)
        passwords.write_text(json.dumps({"admin": self.password}) + "\n")
        migration = state.start("migration", partial(self._run, "migration", ("db", "migrate")))
        if migration.wait() != 0:
            raise self._failed("migration")
        self._let_readers_be()
        running = {name: state.start(name, partial(self._run, name, command)) for name, command in PARTS.items()}
        return self._wait(running)

    def keep_up(self, state: State, say: Callable[[str], None]) -> Callable[[], None]:
        """To be called again and again: starts a part anew that has ended, and raises if one does not stay up."""
        ended: Counter[str] = Counter()

        def look() -> None:
            for process in [one for one in state.processes if one.name in PARTS and not one.is_running()]:
                name = process.name
                ended[name] += 1
                if ended[name] > RESTARTS:
                    raise self._failed(name, "again and again")
                say(f"Airflow's {name} has ended and is started again; its log is {self.log(name)}")
                stop(process)
                state.processes.remove(process)
                state.start(name, partial(self._run, name, PARTS[name]))

        return look

    def log(self, part: str) -> Path:
        return self.home / f"{part}.log"

    def _let_readers_be(self) -> None:
        """SQLite's writers and readers do not wait for each other in this mode, which stays with the file."""
        database = self.home / "airflow.db"
        if database.exists():
            with closing(sqlite3.connect(database)) as connection:
                connection.execute("pragma journal_mode=wal")

    def _run(self, name: str, command: tuple[str, ...]) -> subprocess.Popen[bytes]:
        program = [sys.executable, "-m", "airflow", *command]
        return spawn(program, self.log(name), self._environment(), self.home)

    def _environment(self) -> dict[str, str]:
        kept = ("HOME", "LANG", "LC_ALL", "JAVA_HOME", "TMPDIR", "TZ", "JAVA_TOOL_OPTIONS")
        return {
            **{name: os.environ[name] for name in kept if name in os.environ},
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))),
            **SMALL,
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.home}/airflow.db?timeout={BUSY_SECONDS}",
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

    def _failed(self, part: str, when: str = "while starting") -> EnvironmentMissing:
        return EnvironmentMissing(
            f"Airflow's {part} ended {when}: {tail(self.log(part))}",
            next_step=f"Its log is {self.log(part)}.",
        )
