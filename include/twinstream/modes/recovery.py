"""How long it takes until a killed runner's successor commits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from twinstream.errors import ProcessingFailed
from twinstream.ledger import Ledger
from twinstream.modes.world import World
from twinstream.settings import PREFIX, Settings

PATIENCE_SECONDS = 300.0


def recovery_seconds(settings: Settings, world: World, mode: str, every: str, max_batches: int | None) -> float | None:
    """Kills a runner after its first commit, starts another one at once, and waits for the commit after.

    None where the first one was done already. Both are on this machine, where a dead runner is known to be dead;
    elsewhere its lease must run out first.
    """
    order = json.dumps(
        {
            "name": world.name, "home": str(world.home), "ledger": str(world.ledger), "topics": dict(world.topics),
            "batch_records": world.batch_records, "mode": mode, "every": every, "max_batches": max_batches,
        }
    )  # fmt: skip
    log = world.ledger.with_name("runner.log")
    ledger = Ledger.open(f"sqlite:///{world.ledger}")
    try:
        with _Runner(order, settings, log) as first:
            frontier = first.commits_after(ledger, world.name, 0)
        killed = time.monotonic()
        if frontier is None:
            return None
        with _Runner(order, settings, log) as second:
            found = second.commits_after(ledger, world.name, _frontier(ledger, world.name))
            return None if found is None else time.monotonic() - killed
    finally:
        ledger.close()


class _Runner:
    """A process group that is killed at the end, Spark with it."""

    def __init__(self, order: str, settings: Settings, log: Path) -> None:
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "twinstream.modes.runner", order],
                env=_environment(settings), stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip

    def commits_after(self, ledger: Ledger, name: str, frontier: int) -> int | None:
        """The first frontier beyond this one; None if the runner ended well without one."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := _frontier(ledger, name)) <= frontier:
            code = self._process.poll()
            if code == 0 and _frontier(ledger, name) <= frontier:
                return None
            if code or time.monotonic() > deadline:
                said = self._log.read_text(errors="replace").strip().splitlines()
                raise ProcessingFailed(
                    f"A runner that was to be killed ended by itself: {said[-1] if said else 'it said nothing'}",
                    untouched="The pipeline itself was not touched.",
                    next_step="Run the command again, or with --no-kill.",
                )
            time.sleep(0.02)
        return found

    def __enter__(self) -> _Runner:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _frontier(ledger: Ledger, name: str) -> int:
    generation = ledger.generations.current(name)
    return 0 if generation is None else generation.frontier


def _environment(settings: Settings) -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_GATEWAY", PREFIX))}
    ours = {
        "PIPELINES": str(settings.pipelines), "HOME": str(settings.home), "MASTER": settings.master,
        "JARS": str(settings.jars or ""), "LEASE_SECONDS": str(settings.lease_seconds),
        "DRIVER_MEMORY": settings.driver_memory,
        **{name.upper(): value for name, value in settings.connections.items()},
    }  # fmt: skip
    return kept | {PREFIX + name: value for name, value in ours.items()}
