"""The heartbeat keeps a lease alive while Spark works, and notices when it was taken."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from twinstream.errors import Fenced, LedgerError
from twinstream.ledger import Lease, Ledger
from twinstream.ledger.leases import taken_over


class Heartbeat:
    """Renews a lease from a thread of its own."""

    def __init__(self, ledger: Ledger, lease: Lease) -> None:
        self._ledger = ledger
        self._lease = lease
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
        """Raises Fenced if the lease was lost. Only a courtesy: what protects the result is the sink's epoch."""
        if self._lost is not None:
            raise self._lost

    def _run(self) -> None:
        renewed = time.monotonic()
        while not self._stop.wait(self._lease.seconds / 4):
            try:
                self._ledger.leases.renew(self._lease)
                renewed = time.monotonic()
            except Fenced as error:
                self._lost = error
                return
            except LedgerError:
                if time.monotonic() - renewed > self._lease.seconds:
                    self._lost = taken_over(self._lease)
                    return
