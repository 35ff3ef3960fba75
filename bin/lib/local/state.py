"""What bin/cluster remembers between its commands: one JSON file that only its owner can read."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bin.lib.local.interrupts import held
from bin.lib.local.processes import Started

Process = subprocess.Popen[bytes]


@dataclass
class State:
    """The processes that run, where they listen, and the secrets, which stay the same from start to start."""

    file: Path
    processes: list[Started] = field(default_factory=list)
    addresses: dict[str, str] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, file: Path) -> State:
        try:
            kept: dict[str, Any] = json.loads(file.read_text())
        except FileNotFoundError:
            return cls(file)
        kept["processes"] = [Started(**process) for process in kept["processes"]]
        return cls(file, **kept)

    def save(self) -> None:
        """In one step: whoever is killed meanwhile leaves the old file or the new one."""
        kept = asdict(self)
        del kept["file"]
        self.file.parent.mkdir(parents=True, exist_ok=True)
        scratch = self.file.with_suffix(".new")
        scratch.unlink(missing_ok=True)
        with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as output:
            json.dump(kept, output, indent=2)
            output.write("\n")
        scratch.replace(self.file)

    def secret(self, name: str, make: Callable[[], str] = lambda: secrets.token_hex(24)) -> str:
        """The secret of that name, made when it is asked for first."""
        return self.secrets.setdefault(name, make())

    def start(self, name: str, run: Callable[[], Process], stop_signal: int = signal.SIGTERM) -> Process:
        """Starts a process and remembers it in one go, so that a stop finds it whatever happens next."""
        with held():
            process = run()
            self.processes.append(Started.of(name, process, stop_signal))
            self.save()
        return process

    def running(self) -> list[Started]:
        return [process for process in self.processes if process.is_running()]
