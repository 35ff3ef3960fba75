"""docker-compose as it reads the project's file with given settings."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Read:
    """What docker-compose made of the file, or its error."""

    code: int
    out: str
    err: str

    @property
    def services(self) -> dict[str, Any]:
        found: dict[str, Any] = yaml.safe_load(self.out)["services"]
        return found


def compose_config(settings: Mapping[str, str], folder: Path, *options: str) -> Read:
    """Runs `docker-compose config` with these settings and nothing from this machine's environment."""
    file = folder / "settings"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    program = ["docker-compose"] if shutil.which("docker-compose") else ["docker", "compose"]
    command = [*program, "--file", f"{ROOT}/docker-compose.yaml", "--env-file", str(file), *options, "config"]
    done = subprocess.run(
        command, cwd=ROOT, env={"PATH": "/usr/local/bin:/usr/bin:/bin"}, capture_output=True, text=True, timeout=60
    )
    return Read(done.returncode, done.stdout, done.stderr)
