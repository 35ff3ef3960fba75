"""Requests to stop: an entry in the journal ends whoever runs the pipeline at that time, at the next frontier."""

from __future__ import annotations

import time

from twinstream.ledger import Ledger
from twinstream.ledger.journal import STOP_ASKED

LOOK_SECONDS = 1.0


class Stops:
    """What was asked since this runner began; what was asked before it was meant for others."""

    def __init__(self, ledger: Ledger, generation: int) -> None:
        self._ledger = ledger
        self._generation = generation
        self._before = self._newest()
        self._reason: str | None = None
        self._looked = time.monotonic()

    def asked(self) -> bool:
        """Whether this runner is to stop; looks into the ledger once a second at most."""
        if self._reason is None and time.monotonic() - self._looked >= LOOK_SECONDS:
            self._looked = time.monotonic()
            newest = self._newest()
            if newest is not None and newest != self._before:
                self._reason = str(newest["detail"])
        return self._reason is not None

    @property
    def reason(self) -> str:
        return self._reason or ""

    def _newest(self) -> dict[str, object] | None:
        return self._ledger.journal.last(self._generation, (STOP_ASKED,))
