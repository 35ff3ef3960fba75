"""The README's commands do what the README says: they are run as they stand there, in order."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LONG = {"bin/demo", "bin/test"}


def commands() -> list[list[str]]:
    blocks = re.findall(r"^```console\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert all(line.startswith("$ ") for line in lines)
    return [shlex.split(line[2:]) for line in lines]


def test_every_command_of_the_readme_succeeds(tmp_path):
    assert {command[0] for command in commands()} > LONG
    settings = {name: value for name, value in os.environ.items() if not name.startswith("TWINSTREAM_")}
    settings |= {
        "TWINSTREAM_HOME": str(tmp_path / "home"),
        "TWINSTREAM_PIPELINES": str(tmp_path / "pipelines"),
        "TWINSTREAM_MASTER": "local[2]",
    }
    said = {}
    for command in commands():
        if command[0] in LONG:
            continue
        assert command[0] == "bin/twinstream"
        done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"
        said.setdefault(command[1], []).append(done)

    assert "read 50 000" in said["status"][0].stdout
    header, *rows = said["read"][0].stdout.splitlines()
    assert header == "country,window_start,window_end,sales,revenue"
    assert len(rows) == 5
    assert said["drain"][1].stderr.startswith("Nothing to do")
    assert "sales" in said["list"][0].stdout
