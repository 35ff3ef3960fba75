"""Who holds a lease: host, process and a token; a process that is known to be dead need not be waited for."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from twinstream.ledger.database import host_identity


def new_holder() -> str:
    """A name for this runner that says where it runs and is never used twice."""
    return f"{host_identity()} pid {os.getpid()} started {_started(os.getpid())} {secrets.token_hex(4)}"


def is_dead(holder: str) -> bool:
    """Whether the holder surely does not run any more. Only saves waiting: the sink's epoch is what protects."""
    try:
        host, _, rest = holder.partition(" pid ")
        pid, _, rest = rest.partition(" started ")
        started = rest.split(" ")[0]
        return host == host_identity() and started != "" and _started(int(pid)) != started
    except ValueError:
        return False


def _started(pid: int) -> str:
    """When a process started, in the kernel's ticks; empty if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]
