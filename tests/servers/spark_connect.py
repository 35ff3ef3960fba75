"""A throw-away Spark Connect server: real Spark that outlives the processes that the tests kill."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

START_SECONDS = 120


@contextmanager
def spark_connect_server(more: Mapping[str, str] | None = None, token: str = "") -> Iterator[str]:
    """Starts a server of its own on a free loopback port and yields its `sc://` address.

    `more` are settings besides; with a token it answers only to those who know it.
    """
    port = _free_port()
    home = Path(pyspark.__file__).parent
    with tempfile.TemporaryDirectory(prefix="twinstream-connect-") as scratch:
        settings = {
            "spark.connect.grpc.binding.port": str(port),
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.local.dir": f"{scratch}/local",
            "spark.sql.warehouse.dir": f"{scratch}/warehouse",
            "spark.log.level": "ERROR",
            **(more or {}),
        }
        command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--driver-memory", "1g"]
        for key, value in settings.items():
            command += ["--conf", f"{key}={value}"]
        command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
        secret = {"SPARK_CONNECT_AUTHENTICATE_TOKEN": token} if token else {}
        log = Path(scratch) / "server.log"
        with log.open("wb") as output:
            server = subprocess.Popen(
                command,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, "SPARK_HOME": str(home), **secret},
            )
        try:
            _wait(port, server, log)
            yield f"sc://127.0.0.1:{port}"
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait(20)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise RuntimeError(f"Spark Connect did not start:\n{log.read_text(errors='replace')[-4000:]}")
