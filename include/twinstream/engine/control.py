"""What people ask of a pipeline that runs, and of single txids."""

from __future__ import annotations

import time

from twinstream.engine.opened import Opened
from twinstream.errors import LeaseHeld
from twinstream.ledger import Generation
from twinstream.ledger.journal import STOP_ASKED
from twinstream.runtime.holder import is_dead


def stop(opened: Opened, name: str, reason: str) -> bool:
    """Asks whoever runs the pipeline, or stands by, to end at the next frontier; whether somebody runs it."""
    generation = opened.any_generation(opened.definition(name))
    opened.ledger.journal.add(generation.id, STOP_ASKED, reason)
    return _runner(opened, generation) is not None


def wait_until_free(opened: Opened, name: str, seconds: float) -> None:
    """Returns when nobody runs the pipeline any more; raises LeaseHeld after `seconds`."""
    generation = opened.any_generation(opened.definition(name))
    deadline = time.monotonic() + seconds
    while (runner := _runner(opened, generation)) is not None:
        if time.monotonic() >= deadline:
            raise LeaseHeld(
                f"{runner} still runs {name} after {seconds:.0f} s.",
                untouched="It was asked to stop and ends at its next frontier.",
                next_step="Run the command again later.",
            )
        time.sleep(0.2)


def _runner(opened: Opened, generation: Generation) -> str | None:
    """Who runs a generation, as far as its lease and this machine can tell."""
    holder = opened.ledger.leases.holder(generation.id)
    return holder[0] if holder is not None and holder[2] and not is_dead(holder[0]) else None
