"""One command of the engine on Spark, in processes of its own that end with the task, whatever ends it."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException

import twinstream
from twinstream.settings import Settings
from twinstream.sources.kafka.connection import variable_of
from twinstream_airflow.running import guard
from twinstream_airflow.running.entry_points import entry_point
from twinstream_airflow.running.failures import as_airflow
from twinstream_airflow.running.where import ConnectServer

log = logging.getLogger(__name__)

KILL_SECONDS = 30.0
TAIL = 15
_UI = re.compile(r"Spark UI: (https?://\S+)")


class Job(ABC):
    """Runs a command as people see it: what it says goes to the task's log, what came of it comes back."""

    def __init__(
        self, command: str, arguments: Sequence[str], settings: Settings, context: Mapping[str, str],
        on_ui: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.command = command
        self.arguments = [str(argument) for argument in arguments]
        self.settings = settings
        self.context = dict(context)
        self._on_ui = on_ui
        self._tail: deque[str] = deque(maxlen=TAIL)
        self._killed = False

    def run(self, look: Callable[[], None]) -> dict[str, Any]:
        """The command's result; raises what went wrong, the engine's own words first.

        `look` is called first or, where that is no waste, while the command's libraries are loaded. What it raises ends
        the command.
        """
        with tempfile.TemporaryDirectory(prefix="twinstream-") as folder:
            file = Path(folder) / "result.json"
            environment = self._environment(file)
            self._start(environment)
            try:
                look()
            except BaseException:
                self.kill()
                raise
            failure: AirflowException | None = None
            try:
                self._wait(environment)
            except AirflowException as error:
                failure = error
            said = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        # What the command itself said is worth more than that it failed.
        if "error" in said:
            raise as_airflow(said["error"])
        if "result" not in said:
            if isinstance(failure, AirflowFailException):
                raise failure
            ending = "was stopped" if self._killed else "ended without a word"
            raise AirflowException(
                f"`twinstream {self.command}` on Spark {ending}. What was committed stays; the next try goes on from "
                "there. Its last lines were:\n" + "\n".join(self._tail)
            )
        return dict(said["result"])

    def kill(self) -> None:
        """Ends everything that was started, here and on the Spark that did the work."""
        self._killed = True
        process = self._process()
        if process is None or process.poll() is not None:
            return
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
        try:
            process.wait(KILL_SECONDS)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    @abstractmethod
    def _start(self, environment: Mapping[str, str]) -> None:
        """Starts what need not wait for the look."""

    @abstractmethod
    def _wait(self, environment: Mapping[str, str]) -> None:
        """Returns when the command has ended."""

    @abstractmethod
    def _process(self) -> subprocess.Popen[Any] | None: ...

    def _environment(self, result: Path) -> dict[str, str]:
        """Secrets travel here and nowhere else: not in arguments, which everybody on the machine can read."""
        settings = self.settings
        search = [str(Path(twinstream.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        return {
            **os.environ,
            "TWINSTREAM_HOME": str(settings.home),
            "TWINSTREAM_PIPELINES": str(settings.pipelines),
            "TWINSTREAM_LEDGER_URL": settings.ledger_url,
            **{variable_of(name): value for name, value in settings.connections.items()},
            "TWINSTREAM_CONTEXT": json.dumps(self.context),
            "TWINSTREAM_RESULT": str(result),
            **({"TWINSTREAM_JARS": str(settings.jars)} if settings.jars else {}),
            "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON") or sys.executable,
            "PYTHONPATH": os.pathsep.join(filter(None, search)),
            "PYTHONUNBUFFERED": "1",
            "COLUMNS": "120",
        }

    def _heard(self, lines: Iterable[str]) -> Iterator[str]:
        """The lines as they come; remembers the last ones and notices where Spark's own pages are."""
        for line in lines:
            self._tail.append(line.rstrip())
            if found := _UI.search(line):
                self._on_ui(found[1])
            yield line


class ConnectJob(Job):
    """A command as a client of a Spark Connect server: no JVM is started."""

    def __init__(self, server: ConnectServer, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._server = server
        self._child: subprocess.Popen[str] | None = None

    def _process(self) -> subprocess.Popen[str] | None:
        return self._child

    def _start(self, environment: Mapping[str, str]) -> None:
        command = [sys.executable, guard.__file__, sys.executable, str(entry_point(self.command)), *self.arguments]
        log.info("%s %s by Spark Connect", self.command, " ".join(self.arguments))
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={**environment, **self._sessions()},
        )

    def _wait(self, environment: Mapping[str, str]) -> None:
        if self._server.ui:
            self._on_ui(self._server.ui)
        assert self._child is not None
        assert self._child.stdout is not None
        for line in self._heard(self._child.stdout):
            log.info("%s", line.rstrip())
        self._child.wait()

    def _sessions(self) -> dict[str, str]:
        """The session of this try, and that of the try before it, should that one have died with its guard."""
        found = {"TWINSTREAM_MASTER": self._server.session(self.context)}
        tries = int(self.context.get("try_number", "1"))
        if tries > 1:
            found["TWINSTREAM_STALE"] = self._server.session({**self.context, "try_number": str(tries - 1)})
        return found
