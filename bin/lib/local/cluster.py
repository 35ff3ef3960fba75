"""The parts of docker-compose.yaml on this machine: PostgreSQL with two databases, Spark master, workers, Connect."""

from __future__ import annotations

import fcntl
import json
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bin.lib.local import postgres
from bin.lib.local.databases import make_databases
from bin.lib.local.processes import free_port, stop
from bin.lib.local.spark import Spark, write_defaults
from bin.lib.local.state import State
from twinstream.errors import LeaseHeld

DATABASES = ("airflow", "twinstream")
WORKERS = ("worker-1", "worker-2")
POSTGRES_SETTINGS = {"shared_buffers": "64MB", "max_connections": "200"}
Say = Callable[[str], None]


class Cluster:
    """Lives in `home`: cluster.json is what is known about it, cluster/ holds the files of its parts."""

    def __init__(self, home: Path, jars: Path) -> None:
        self.home = home
        self.jars = jars
        self.folder = home / "cluster"
        self.spark = Spark(self.folder / "spark")
        self.state = State.load(home / "cluster.json")

    def start(self, *, connect: bool, say: Say) -> None:
        """Starts all parts; when one fails, or this is interrupted, those that run already are stopped again."""
        with self._alone():
            if self.state.running():
                self._stop()
            try:
                self._start_postgres(say)
                self._start_spark(say)
                if connect:
                    self._start_connect(say)
            except BaseException:
                self._stop()
                raise

    def stop(self) -> list[str]:
        """Stops exactly what was started; the databases' files stay. Returns what was running."""
        with self._alone():
            running = [process.name for process in self.state.running()]
            self._stop()
            return running

    def is_up(self) -> bool:
        """Whether everything that was started runs."""
        return bool(self.state.processes) and len(self.state.running()) == len(self.state.processes)

    def settings(self) -> dict[str, str]:
        """The environment that makes Twinstream, Spark and Airflow use this cluster."""
        state = self.state
        server = f"127.0.0.1:{state.ports['postgres']}"
        ledger = f"postgresql://twinstream:{state.secrets['twinstream']}@{server}/twinstream"
        airflow = f"postgresql+psycopg://airflow:{state.secrets['airflow']}@{server}/airflow"
        host, _, port = state.addresses["master"].rpartition(":")
        found = {
            "TWINSTREAM_HOME": str(self.home),
            "TWINSTREAM_MASTER": state.addresses["master"],
            "TWINSTREAM_LEDGER_URL": ledger,
            "SPARK_CONF_DIR": str(self.spark.conf),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": airflow,
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": airflow,
            "AIRFLOW_CONN_TWINSTREAM_LEDGER": ledger,
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": host, "port": int(port)}),
        }
        if "connect" in state.ports:
            connect = {"conn_type": "spark_connect", "host": "sc://localhost", "port": state.ports["connect"]}
            found["AIRFLOW_CONN_SPARK_CONNECT"] = json.dumps(connect | {"password": state.secrets["connect"]})
        return found

    def _start_postgres(self, say: Say) -> None:
        state, folder = self.state, self.folder / "postgres"
        programs, user = postgres.find_programs(), postgres.unprivileged_user()
        password = state.secret("postgres")
        state.save()
        if not (folder / "data" / "PG_VERSION").exists():
            postgres.make_cluster(programs, folder, user, password)
        port = free_port(state.ports.get("postgres"))
        state.ports["postgres"] = port
        server = state.start(
            "postgres", lambda: postgres.serve(programs, folder, user, port, POSTGRES_SETTINGS), signal.SIGINT
        )
        postgres.wait_until_ready(server, port, password, folder / "log")
        address = f"postgresql://{postgres.SUPERUSER}:{password}@127.0.0.1:{port}/postgres"
        make_databases(address, {name: state.secret(name) for name in DATABASES})
        state.addresses["postgres"] = f"127.0.0.1:{port}"
        state.save()
        say(f"PostgreSQL answers on 127.0.0.1:{port} (databases {' and '.join(DATABASES)})")

    def _start_spark(self, say: Say) -> None:
        state, spark = self.state, self.spark
        write_defaults(spark.conf, state.secret("spark"), self.jars)
        process = state.start("master", spark.master)
        master, page = spark.master_address(process)
        state.addresses |= {"master": master, "master page": page}
        state.save()
        say(f"Spark master answers on {master} (page {page})")
        workers = {name: state.start(name, partial(spark.worker, name, master)) for name in WORKERS}
        spark.wait_for_workers(page, workers)
        say(f"{len(workers)} Spark workers are registered")

    def _start_connect(self, say: Say) -> None:
        state, spark = self.state, self.spark
        port = state.ports["connect"] = free_port()
        token = state.secret("connect")
        process = state.start("connect", partial(spark.connect, state.addresses["master"], port, token))
        spark.wait_for_connect(process, port)
        state.addresses["connect"] = f"sc://localhost:{port}"
        state.save()
        say(f"Spark Connect answers on sc://localhost:{port}")

    def _stop(self) -> None:
        """The last started first; a process is forgotten only when it is gone."""
        state = self.state
        for process in reversed(state.processes.copy()):
            stop(process)
            state.processes.remove(process)
            state.save()
        state.addresses.clear()
        state.ports.pop("connect", None)
        if state.file.exists():
            state.save()
        for name in ("master", "connect", *WORKERS):
            shutil.rmtree(self.spark.folder / name, ignore_errors=True)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Of two commands at once the second one is refused; what the first one did is read afresh."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LeaseHeld(
                    f"Another bin/cluster is starting or stopping the parts in {self.folder}.",
                    next_step="Wait for it, then try again.",
                ) from None
            self.state = State.load(self.state.file)
            yield
