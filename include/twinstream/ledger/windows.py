"""A window of txids as pages show them: few columns of many rows, never a scan of them all."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import and_, select

from twinstream.ledger.database import Database
from twinstream.ledger.schema import attempts, batches, journal
from twinstream.transaction import Outcome, State


@dataclass(frozen=True)
class TxidRow:
    """One txid in a line."""

    txid: int
    state: str
    records: int
    bytes: int
    batch_time: int
    committed_at: int | None
    watermark: int | None
    highest_event_time: int | None
    emitted: int | None
    filtered: int | None
    late: int | None
    duplicate: int | None
    dead: int | None
    discarded: int | None
    rows_out: int | None
    epoch: int | None
    held_reason: str | None
    discard_reason: str | None
    started_at: int | None
    """When the attempt started that it is in now, or that committed it."""


# In the order of the fields: rows are made by it.
_NAMES = tuple(name for name in TxidRow.__dataclass_fields__ if name != "started_at")


def window(database: Database, generation: int, first: int, last: int) -> list[TxidRow]:
    """The txids from `first` to `last`, in order."""
    statement = (
        select(*(batches.c[name] for name in _NAMES), attempts.c.started_at)
        .select_from(batches)
        .outerjoin(attempts, attempts.c.id == batches.c.attempt)
        .where(batches.c.generation == generation, batches.c.txid >= first, batches.c.txid <= last)
        .order_by(batches.c.txid)
    )
    with database.read() as connection:
        return [TxidRow(*tuple(row)) for row in connection.execute(statement)]


def open_states(database: Database, generation: int, frontier: int, limit: int) -> dict[int, str]:
    """The states of the first open txids; work goes on in their order, so that those beyond are planned."""
    statement = select(batches.c.txid, batches.c.state).where(
        batches.c.generation == generation, batches.c.txid > frontier, batches.c.txid <= frontier + limit
    )
    with database.read() as connection:
        return {row.txid: row.state for row in connection.execute(statement) if row.state != State.COMMITTED}


def failed(database: Database, generation: int, frontier: int) -> dict[int, str]:
    """Open txids whose newest attempt failed, with its error."""
    statement = (
        select(attempts.c.first_txid, attempts.c.last_txid, attempts.c.outcome, attempts.c.error)
        .where(and_(attempts.c.generation == generation, attempts.c.last_txid > frontier))
        .order_by(attempts.c.id)
    )
    found: dict[int, tuple[str, str]] = {}
    with database.read() as connection:
        for row in connection.execute(statement):
            tried = range(max(row.first_txid, frontier + 1), row.last_txid + 1)
            found.update(dict.fromkeys(tried, (row.outcome, row.error or "")))
    return {txid: error for txid, (outcome, error) in sorted(found.items()) if outcome == Outcome.FAILED}


def entries(database: Database, generation: int, txid: int) -> list[dict[str, object]]:
    """What the journal says about a txid, oldest first."""
    statement = (
        select(journal.c.at, journal.c.kind, journal.c.txid, journal.c.detail)
        .where(journal.c.generation == generation, journal.c.txid == txid)
        .order_by(journal.c.id)
    )
    with database.read() as connection:
        return [dict(row._mapping) for row in connection.execute(statement)]
