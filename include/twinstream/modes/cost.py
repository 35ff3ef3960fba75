"""What work costs: the CPU seconds of this process and of all that it started, Spark among them."""

from __future__ import annotations

import os
from pathlib import Path


def cpu_seconds() -> float | None:
    """So far; None where the system does not tell. Executors on other machines are not in it."""
    parents: dict[int, int] = {}
    spent: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        parents[int(folder.name)] = int(fields[1])
        spent[int(folder.name)] = int(fields[11]) + int(fields[12])
    if os.getpid() not in spent:
        return None
    return sum(ticks for pid, ticks in spent.items() if _is_ours(pid, parents)) / os.sysconf("SC_CLK_TCK")


def _is_ours(pid: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != os.getpid():
        pid = parents[pid]
    return pid == os.getpid()
