"""The ledger: what was planned, tried and committed, in a small SQL database of its own."""

from __future__ import annotations

from collections.abc import Callable

from twinstream.ledger.attempts import Attempts
from twinstream.ledger.batches import Batches, Planned, PlanRaced
from twinstream.ledger.database import Database, open_database
from twinstream.ledger.generations import Generation, Generations
from twinstream.ledger.journal import Journal
from twinstream.ledger.leases import Lease, Leases
from twinstream.ledger.pins import Pins
from twinstream.ledger.runs import Run, Runs

__all__ = ["Generation", "Lease", "Ledger", "PlanRaced", "Planned", "Run"]


class Ledger:
    """All of the ledger's parts on one database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.generations = Generations(database)
        self.leases = Leases(database)
        self.batches = Batches(database)
        self.attempts = Attempts(database)
        self.pins = Pins(database)
        self.journal = Journal(database)
        self.runs = Runs(database)

    @classmethod
    def open(cls, url: str, *, clock: Callable[[], int] | None = None, create: bool = True) -> Ledger:
        return cls(open_database(url, clock=clock, create=create))

    def close(self) -> None:
        self.database.close()
