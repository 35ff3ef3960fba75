"""Supervision: a continuous runner that somebody started and watches from elsewhere, by the ledger alone.

A supervision is a run of its own kind. The supervisor renews it: *wanted until*. The runner writes into it that it is
alive, and at last how it ended. A runner that is not wanted any more lets its batch end and stops by itself, so that
none is left behind for ever when its supervisor is gone; and it touches its leash, a file, only as long as it is
wanted and can say so, so that a guard on its machine can end one that hangs.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twinstream.errors import LedgerError, TwinstreamError, Unexpected
from twinstream.ledger import Generation, Ledger
from twinstream.ledger.runs import CONTINUOUS, RUNNING, Run, Wanted
from twinstream.runtime.explain import explained, one_line
from twinstream.runtime.holder import holder_of, is_dead, new_holder

KIND = "supervise"
NAMED = "supervision"
"""What a runner's context calls the supervision that it is under."""
BEAT_SECONDS = 2.0
HUNG_SECONDS = 30.0
"""A runner that has not shown itself for so long is dead, or hangs."""
START_SECONDS = 180.0
"""How long a runner may take until it shows itself for the first time."""
LEASH = "TWINSTREAM_LEASH"


@dataclass(frozen=True)
class Looked:
    """What a look at a supervision found."""

    run: Run
    now: int
    said: Mapping[str, Any] = field(default_factory=dict)
    """What the runner says: `seen`, `holder`, and at its end `ended` or `error`. Before that: who `started`."""

    @property
    def wanted(self) -> bool:
        return self.run.state == RUNNING and self.run.expires_at > self.now

    @property
    def over(self) -> bool:
        """Whether the runner has told how it ended."""
        return "ended" in self.said or "error" in self.said

    @property
    def gone(self) -> str | None:
        """Why the runner is taken to be dead; None while it shows itself, and once it has ended in order."""
        if self.over:
            return None
        if "seen" not in self.said:
            if is_dead(self.said.get("started", "")):
                return "its process ended before it came up"
            waited = (self.now - self.run.started_at) / 1_000_000
            return f"it did not come up within {waited:.0f} s" if waited > START_SECONDS else None
        if is_dead(self.said["holder"]):
            return "its process is gone"
        silent = (self.now - int(self.said["seen"])) / 1_000_000
        return f"it has not shown itself for {silent:.0f} s" if silent > HUNG_SECONDS else None


def begin(ledger: Ledger, generation: Generation, seconds: float, context: Mapping[str, str]) -> int:
    """A new supervision, before its runner is started; returns its id."""
    once = {"start": secrets.token_hex(4)}
    wanted = Wanted(generation.id, KIND, generation.frontier, generation.definition_hash, once)
    return ledger.runs.start(wanted, "supervisor", seconds, context=context).id


def started(ledger: Ledger, supervision: int, pid: int) -> None:
    """The runner's process, which has not shown itself yet."""
    ledger.runs.note(ledger.runs.get(supervision), {"started": holder_of(pid)})


def look(ledger: Ledger, supervision: int) -> Looked:
    """Where a supervision stands."""
    with ledger.database.read() as connection:
        now = ledger.database.now(connection)
    run = ledger.runs.get(supervision)
    return Looked(run, now, run.result or {})


def renew(ledger: Ledger, supervision: int, seconds: float) -> None:
    """The supervisor is there, and goes on wanting the runner."""
    ledger.runs.renew(ledger.runs.get(supervision), seconds)


def end(ledger: Ledger, supervision: int) -> None:
    """Nobody wants the runner any more; a no-op where that was so before."""
    run = ledger.runs.get(supervision)
    if run.state == RUNNING:
        ledger.runs.finish(run, run.result or {})


def streaming(ledger: Ledger, generation: int) -> Run | None:
    """The continuous run that holds a generation, if one is alive."""
    _, found = ledger.runs.alive(generation, CONTINUOUS)
    return next((run for run in found if not is_dead(run.holder)), None)


class Supervised:
    """The runner's side, from a thread of its own."""

    def __init__(self, ledger: Ledger, supervision: int, leash: Path | None) -> None:
        self._ledger = ledger
        self._id = supervision
        self._leash = leash
        self._holder = new_holder()
        self._over = threading.Event()
        self._stop: threading.Event | None = None
        self._unwanted = False
        self._thread = threading.Thread(target=self._run, name="twinstream-supervised", daemon=True)

    def ends_by(self, stop: threading.Event) -> None:
        """What to set when nobody wants this runner any more."""
        self._stop = stop
        if self._unwanted:
            stop.set()

    def start(self) -> None:
        self._thread.start()

    def finish(self, said: Mapping[str, Any]) -> None:
        """Says how it ended, to a supervisor that still wants to know."""
        self._over.set()
        self._thread.join()
        self._say(said)

    def _run(self) -> None:
        while True:
            with suppress(LedgerError):
                if not self._say({}):
                    self._unwanted = True
                    if self._stop is not None:
                        self._stop.set()
                    return
                if self._leash is not None:
                    self._leash.touch()
            if self._over.wait(BEAT_SECONDS):
                return

    def _say(self, more: Mapping[str, Any]) -> bool:
        """Shows itself; False if it is not wanted any more."""
        found = look(self._ledger, self._id)
        if found.run.state == RUNNING:
            self._ledger.runs.note(found.run, {"holder": self._holder, "seen": found.now, **more})
        return found.wanted


@contextmanager
def supervised(ledger: Callable[[], Ledger], context: Mapping[str, str]) -> Iterator[Supervised | None]:
    """Under the supervision that the context names, if it names one; an error that leaves the block is told there."""
    if NAMED not in context:
        yield None
        return
    leash = os.environ.get(LEASH, "").partition(":")[2]
    watch = Supervised(ledger(), int(context[NAMED]), Path(leash) if leash else None)
    watch.start()
    try:
        yield watch
    except BaseException as error:
        told = explained(error) or Unexpected(one_line(error))
        with suppress(TwinstreamError):
            watch.finish({"error": {"kind": type(told).__name__, "what": told.what, "next_step": told.next_step}})
        raise
