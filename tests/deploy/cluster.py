"""bin/cluster in a home of its own, and what is left of it."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.e2e.home import Home
from twinstream.settings import Settings

ROOT = Path(__file__).resolve().parents[2]


def environment(home: Path, **more: str) -> dict[str, str]:
    """This machine's environment with nothing of another Twinstream, Airflow or Spark in it."""
    foreign = ("TWINSTREAM_", "AIRFLOW", "SPARK_", "PYSPARK_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return kept | {
        "TWINSTREAM_HOME": str(home),
        **more,
    }


def cluster(home: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Runs bin/cluster."""
    command = [str(ROOT / "bin" / "cluster"), *arguments]
    return subprocess.run(command, env=environment(home, **more), capture_output=True, text=True, timeout=300)


def exports(text: str) -> dict[str, str]:
    """The settings that it prints, as a shell would take them."""
    found = {}
    for line in text.splitlines():
        name, _, value = line.removeprefix("export ").partition("=")
        found[name] = "".join(shlex.split(value))
    return found


def left_over(home: Path) -> list[str]:
    """Processes of this machine that have anything to do with this home."""
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join([*process.cmdline(), process.cwd()])
        except psutil.Error:
            continue
        if str(home) in words and process.pid != os.getpid():
            found.append(words)
    return found


def secrets_of(home: Path) -> list[str]:
    return list(json.loads((home / "cluster.json").read_text())["secrets"].values())


@dataclass
class ClusterHome(Home):
    """A home whose ledger and Spark are the cluster's; commands are processes, as a user runs them."""

    exported: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return environment(self.folder, TWINSTREAM_PIPELINES=str(self.pipelines)) | self.exported

    @property
    def settings(self) -> Settings:
        return Settings.from_env(self.environment)

    def twinstream(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(ROOT / "bin" / "twinstream"), *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done

    def read(self, name: str, **options: Any) -> list[tuple[str, ...]]:
        assert not options
        rows = list(csv.reader(io.StringIO(self.twinstream("read", name, "--format", "csv").stdout)))
        return sorted(tuple(row) for row in rows[1:])


def pid_of(status: str, part: str) -> int:
    """The process that `bin/cluster status` names for a part."""
    found = re.search(rf"^{part}\s+runs\s+pid (\d+)", status, re.MULTILINE)
    assert found is not None, status
    return int(found[1])
