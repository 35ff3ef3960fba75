"""Leases: who runs a generation, by the database's clock, with an epoch that grows at every take-over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, insert, select, update

from twinstream.errors import Fenced, LeaseHeld
from twinstream.ledger.database import Database
from twinstream.ledger.journal import write_entry
from twinstream.ledger.schema import IS_OPEN, IS_UNCLEAN, attempts, batches, leases
from twinstream.transaction import Outcome, State


@dataclass(frozen=True)
class Lease:
    """The right to run a generation, under an epoch that no other runner ever had."""

    generation: int
    epoch: int
    holder: str
    seconds: float


class Leases:
    """Takes, renews and gives back leases."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def acquire(
        self, generation: int, holder: str, seconds: float, is_dead: Callable[[str], bool] = lambda _: False
    ) -> Lease:
        """Takes the lease if it is free, has run out or its holder is known to be dead; raises LeaseHeld otherwise.

        What the runner before left half done goes back: its attempts are abandoned, its txids planned again.
        """
        with self._db.write("lease", generation) as connection:
            now = self._db.now(connection)
            row = connection.execute(select(leases).where(leases.c.generation == generation)).first()
            if row is not None and row.expires_at > now and not is_dead(row.holder):
                raise LeaseHeld(
                    f"{row.holder} is running this pipeline (epoch {row.epoch}).",
                    next_step=f"Its lease ends in {(row.expires_at - now) / 1e6:.0f} s unless it is renewed; "
                    "wait for it, or run the command again later.",
                )
            epoch = (row.epoch if row else 0) + 1
            values = {
                "epoch": epoch,
                "holder": holder,
                "expires_at": now + _micros(seconds),
                "taken_at": now,
            }
            if row is None:
                connection.execute(insert(leases).values(generation=generation, **values))
            else:
                connection.execute(update(leases).where(leases.c.generation == generation).values(**values))
                self._abandon(connection, generation, now)
                if row.expires_at > 0:
                    detail = f"{holder} (epoch {epoch}) took over from {row.holder} (epoch {row.epoch})"
                    write_entry(connection, generation, now, "take-over", detail)
        return Lease(generation, epoch, holder, seconds)

    def renew(self, lease: Lease) -> None:
        """Extends the lease; raises Fenced if another runner has taken over."""
        with self._db.write("renew") as connection:
            now = self._db.now(connection)
            changed = connection.execute(
                update(leases).where(*_mine(lease)).values(expires_at=now + _micros(lease.seconds))
            ).rowcount
            if changed != 1:
                raise taken_over(lease)

    def release(self, lease: Lease) -> None:
        """Gives the lease back, so that the next runner need not wait; no-op if it was taken already."""
        with self._db.write("unlease") as connection:
            connection.execute(update(leases).where(*_mine(lease)).values(expires_at=0))

    def holder(self, generation: int) -> tuple[str, int, bool] | None:
        """Holder, epoch and whether the lease is live."""
        with self._db.read() as connection:
            row = connection.execute(select(leases).where(leases.c.generation == generation)).first()
            return None if row is None else (row.holder, row.epoch, row.expires_at > self._db.now(connection))

    @staticmethod
    def _abandon(connection: Connection, generation: int, now: int) -> None:
        connection.execute(
            update(attempts)
            .where(
                attempts.c.generation == generation,
                attempts.c.outcome == Outcome.RUNNING,
                IS_UNCLEAN,
            )
            .values(outcome=Outcome.ABANDONED, ended_at=now)
        )
        connection.execute(
            update(batches)
            .where(
                batches.c.generation == generation,
                batches.c.state == State.PROCESSING,
                IS_OPEN,
            )
            .values(state=State.PLANNED, attempt=None)
        )


def require(connection: Connection, lease: Lease) -> None:
    """Inside a transaction that writes to the lease's generation: the lease must still be this runner's."""
    row = connection.execute(select(leases.c.epoch).where(*_mine(lease))).first()
    if row is None:
        raise taken_over(lease)


def taken_over(lease: Lease) -> Fenced:
    """What a runner is told that lost its lease."""
    return Fenced(
        f"Another runner has taken over from epoch {lease.epoch}; this one stops.",
        untouched="Nothing of its unfinished work was committed.",
        next_step="Nothing to do: the other runner goes on from the frontier.",
    )


def _mine(lease: Lease) -> tuple[ColumnElement[bool], ...]:
    return (
        leases.c.generation == lease.generation,
        leases.c.epoch == lease.epoch,
        leases.c.holder == lease.holder,
    )


def _micros(seconds: float) -> int:
    return int(seconds * 1_000_000)
