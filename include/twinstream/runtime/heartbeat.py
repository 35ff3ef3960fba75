"""The heartbeat keeps a lease or a run alive while Spark works, and notices when it was taken."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from twinstream.errors import Fenced, LedgerError
from twinstream.ledger import Lease, Ledger, Run
from twinstream.ledger.leases import taken_over
from twinstream.ledger.runs import taken_over as run_taken_over


class Heartbeat:
    """Renews a right that runs out, from a thread of its own."""

    def __init__(self, renew: Callable[[], None], seconds: float, lost: Callable[[], Fenced]) -> None:
        self._renew = renew
        self._seconds = seconds
        self._say_lost = lost
        self._stop = threading.Event()
        self._lost: Fenced | None = None
        self._thread = threading.Thread(target=self._run, name="twinstream-heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def check(self) -> None:
        """Raises Fenced if it was lost. Only a courtesy: what protects the result is the sink's epoch."""
        if self._lost is not None:
            raise self._lost

    def _run(self) -> None:
        renewed = time.monotonic()
        while not self._stop.wait(self._seconds / 4):
            try:
                self._renew()
                renewed = time.monotonic()
            except Fenced as error:
                self._lost = error
                return
            except LedgerError:
                if time.monotonic() - renewed > self._seconds:
                    self._lost = self._say_lost()
                    return


def lease_heartbeat(ledger: Ledger, lease: Lease) -> Heartbeat:
    """Keeps a runner's lease alive."""
    return Heartbeat(lambda: ledger.leases.renew(lease), lease.seconds, lambda: taken_over(lease))


def run_heartbeat(ledger: Ledger, run: Run, seconds: float) -> Heartbeat:
    """Keeps a run of the batch layer alive."""
    return Heartbeat(lambda: ledger.runs.renew(run, seconds), seconds, lambda: run_taken_over(run))
