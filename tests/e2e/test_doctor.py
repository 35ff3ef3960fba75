"""The doctor on a real Spark, which here is a Connect server: this process needs no Java."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.servers.spark_connect import spark_connect_server

PIPELINES = Path(__file__).resolve().parent.parent.parent / "include" / "pipelines"


def test_the_round_trip_is_seen_to_work_on_spark_connect(tmp_path):
    with spark_connect_server() as master:
        settings = {name: value for name, value in os.environ.items() if not name.startswith(("TWINSTREAM_", "JAVA_"))}
        settings |= {
            "TWINSTREAM_HOME": str(tmp_path / "home"),
            "TWINSTREAM_PIPELINES": str(PIPELINES),
            "TWINSTREAM_MASTER": master,
            "PATH": str(tmp_path),
        }
        command = [sys.executable, "-m", "twinstream.cli", "doctor", "--json"]
        done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    states = {check["name"]: check["state"] for check in json.loads(done.stdout)["checks"]}
    assert states["java"] == "skipped"
    assert states["spark"] == states["round trip"] == "ok"
