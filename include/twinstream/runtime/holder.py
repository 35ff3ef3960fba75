"""Who holds a lease: host, process and a token; a process that is known to be dead need not be waited for."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from twinstream.ledger.database import host_identity


def new_holder() -> str:
    """A name for this runner that says where it runs and is never used twice."""
    return holder_of(os.getpid())


def holder_of(pid: int) -> str:
    """Such a name for another process of this host."""
    return f"{host_identity()} pid {pid} started {_started(pid)} {secrets.token_hex(4)}"


def is_same_process(one: str, other: str) -> bool:
    """Whether two holders are of one process."""
    return one.rpartition(" ")[0] == other.rpartition(" ")[0]


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
