"""Looking at processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def with_argument(text: str) -> list[int]:
    """Processes that have this text in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if text.encode() in command:
                found.append(int(entry.name))
    return found


def in_settings(name: str, part: str) -> list[int]:
    """Processes that were started with a variable of this name that holds this."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                settings = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(one.startswith(f"{name}=".encode()) and part.encode() in one for one in settings):
                found.append(int(entry.name))
    return found


def wait_until(holds: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether it came to hold in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
