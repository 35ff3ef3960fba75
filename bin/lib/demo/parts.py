"""What the demo starts: a warm Spark Connect server and Airflow, all of it in one folder, on loopback."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bin.lib.demo.telling import say
from bin.lib.local.airflow import Airflow
from bin.lib.local.interrupts import held
from bin.lib.local.processes import free_port, stop
from bin.lib.local.rest import Rest
from bin.lib.local.spark import Spark, write_defaults
from bin.lib.local.state import State
from twinstream.errors import LeaseHeld


class Parts:
    """Everything in `home`, which is emptied at every start."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root = root
        self.home = home
        self.state = State.load(home / "demo.json")
        self.airflow = Airflow(root, home / "airflow", 0, "")

    @contextmanager
    def up(self) -> Iterator[Rest]:
        """Airflow as long as the block lasts; nothing runs any more after it, however it ends."""
        with self._alone():
            try:
                yield self._start()
            finally:
                self.stop()

    def settings(self) -> dict[str, str]:
        """Twinstream's settings in the demo, for commands and for Airflow's tasks."""
        return {
            "TWINSTREAM_HOME": str(self.home),
            "TWINSTREAM_PIPELINES": str(self.root / "include" / "pipelines"),
            "TWINSTREAM_JARS": os.environ["TWINSTREAM_JARS"],
        }

    def stop(self) -> None:
        with held():
            stop(*self.state.processes, seconds=10.0)
            self.state.processes.clear()
            self.state.save()

    def _start(self) -> Rest:
        self.stop()
        for entry in self.home.iterdir():
            if entry.name not in ("lock", "demo.json"):
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        spark, port = Spark(self.home / "spark"), free_port()
        token = self.state.secret("connect")
        write_defaults(spark.conf, self.state.secret("spark"), Path(os.environ["TWINSTREAM_JARS"]), {})
        say("Starting Spark Connect, so that no task has to wait for a Spark of its own")
        process = self.state.start("connect", partial(spark.connect, "local[2]", port, token))
        spark.wait_for_connect(process, port)
        say("Starting Airflow: api-server, scheduler, dag-processor, triggerer (half a minute or so)")
        connection = {"conn_type": "spark_connect", "host": "sc://localhost", "port": port, "password": token}
        settings = self.settings() | {"AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(connection)}
        password = self.state.secret("admin")
        self.airflow = Airflow(self.root, self.home / "airflow", free_port(), password, settings)
        rest = self.airflow.start(self.state)
        rest.watch = self.airflow.keep_up(self.state, say)
        return rest

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LeaseHeld(
                    f"Another demo is running in {self.home}.", next_step="Stop it with Ctrl-C, then start this one."
                ) from None
            yield
