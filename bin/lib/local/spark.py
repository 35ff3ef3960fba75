"""A Spark standalone cluster, and a Connect server on it, by the programs that pyspark brings."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bin.lib.local.processes import require_alive, spawn, wait_for_port
from twinstream.errors import EnvironmentMissing

START_SECONDS = 120.0
WORKER_CORES = 2
WORKER_MEMORY = "2g"
# Each application gets half of two such workers, so that a Connect server and one more find room.
SHARE = {"spark.cores.max": "2", "spark.executor.cores": "1", "spark.executor.memory": "1g"}
# What is spread over so few cores need not be cut into Spark's 200 pieces.
SMALL = {"spark.sql.shuffle.partitions": "8", "spark.ui.showConsoleProgress": "false"}
KEPT = ("PATH", "HOME", "LANG", "JAVA_HOME", "JAVA_TOOL_OPTIONS", "TMPDIR")
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
}


def spark_home() -> Path:
    """Where pyspark is; it is not imported, which would take seconds."""
    found = importlib.util.find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def write_defaults(folder: Path, secret: str, jars: Path, share: Mapping[str, str] = SHARE) -> None:
    """Spark's defaults for daemons and applications: they only talk to those who know the secret, and have Delta."""
    folder.mkdir(parents=True, exist_ok=True)
    found = ",".join(str(jar) for jar in sorted(jars.glob("*.jar")))
    settings = {
        "spark.authenticate": "true",
        "spark.authenticate.secret": secret,
        "spark.jars": found,
        **DELTA,
        **share,
    }
    text = "".join(f"{name} {value}\n" for name, value in settings.items())
    file = folder / "spark-defaults.conf"
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as output:
        output.write(text)


@dataclass(frozen=True)
class Spark:
    """Where the daemons keep their files: conf/, and a folder and a log for each."""

    folder: Path

    @property
    def conf(self) -> Path:
        return self.folder / "conf"

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def master(self) -> subprocess.Popen[bytes]:
        options = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        return self._start("master", ["spark-class", "org.apache.spark.deploy.master.Master", *options])

    def master_address(self, process: subprocess.Popen[bytes]) -> tuple[str, str]:
        """The address for applications and that of the page for people, once both are open."""
        return (
            self._said("master", process, r"Starting Spark master at (spark://\S+)"),
            self._said("master", process, r"started at (http://\S+)"),
        )

    def worker(self, name: str, master: str) -> subprocess.Popen[bytes]:
        options = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", str(WORKER_CORES), "--memory", WORKER_MEMORY]
        options += ["--work-dir", str(self.folder / name)]
        return self._start(name, ["spark-class", "org.apache.spark.deploy.worker.Worker", *options, master])

    def wait_for_workers(self, page: str, workers: Mapping[str, subprocess.Popen[bytes]]) -> None:
        """Returns when the master knows all of them."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            for name, process in workers.items():
                require_alive(_title(name), process, self.log(name))
            with urllib.request.urlopen(f"{page}/json/", timeout=10) as answer:
                if json.load(answer)["aliveworkers"] >= len(workers):
                    return
            time.sleep(0.2)
        raise EnvironmentMissing("The Spark workers did not find their master.", next_step=f"Logs: {self.folder}.")

    def connect(
        self, master: str, port: int, token: str = "", more: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Starts a Connect server; with a token, which is in no command line, it answers to those who know it."""
        settings = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(port),
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.speculation": "false",
            "spark.scheduler.mode": "FAIR",
            **(more or {}),
        }
        command = ["spark-submit", "--master", master, "--driver-memory", "1g"]
        command += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
        command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
        return self._start("connect", command, {"SPARK_CONNECT_AUTHENTICATE_TOKEN": token} if token else None)

    def wait_for_connect(self, process: subprocess.Popen[bytes], port: int) -> None:
        wait_for_port(_title("connect"), process, port, self.log("connect"), START_SECONDS)

    def _start(self, name: str, command: list[str], more: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        self.log(name).unlink(missing_ok=True)
        scratch = self.folder / name
        scratch.mkdir(parents=True, exist_ok=True)
        environment = {key: os.environ[key] for key in KEPT if key in os.environ} | {
            "SPARK_HOME": str(spark_home()),
            "SPARK_CONF_DIR": str(self.conf),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(scratch / "local"),
            "SPARK_DAEMON_MEMORY": "512m",
            "PYSPARK_PYTHON": sys.executable,
            **(more or {}),
        }
        return spawn([spark_home() / "bin" / command[0], *command[1:]], self.log(name), environment, scratch)

    def _said(self, name: str, process: subprocess.Popen[bytes], pattern: str) -> str:
        """What a daemon says in its log when it is ready."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if found := re.search(pattern, self.log(name).read_text(errors="replace")):
                return found[1]
            require_alive(_title(name), process, self.log(name))
            time.sleep(0.1)
        raise EnvironmentMissing(f"{_title(name)} did not start.", next_step=f"Its log: {self.log(name)}.")


def _title(name: str) -> str:
    return "The Spark Connect server" if name == "connect" else f"The Spark {name}"
