"""The journal: what people and recoveries did to a generation, in their words."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, insert, select

from twinstream.ledger.database import Database
from twinstream.ledger.schema import journal
from twinstream.ledger.texts import storable

PAUSED = "paused"
RESUMED = "resumed"
STOP_ASKED = "stop asked"


def write_entry(
    connection: Connection,
    generation: int,
    at: int,
    kind: str,
    detail: str,
    txid: int | None = None,
) -> None:
    """Adds an entry inside the transaction that did what it tells of."""
    connection.execute(
        insert(journal).values(generation=generation, at=at, kind=kind, detail=storable(detail), txid=txid)
    )


class Journal:
    """Reads the journal, and adds what belongs to no other transaction."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def newest(self, generation: int, limit: int = 20) -> list[dict[str, object]]:
        statement = (
            select(journal.c.at, journal.c.kind, journal.c.txid, journal.c.detail)
            .where(journal.c.generation == generation)
            .order_by(journal.c.id.desc())
            .limit(limit)
        )
        with self._db.read() as connection:
            return [dict(row._mapping) for row in connection.execute(statement)]

    def last(self, generation: int, kinds: Collection[str]) -> dict[str, object] | None:
        """The newest entry of one of these kinds."""
        statement = (
            select(journal.c.at, journal.c.kind, journal.c.txid, journal.c.detail)
            .where(journal.c.generation == generation, journal.c.kind.in_(kinds))
            .order_by(journal.c.id.desc())
            .limit(1)
        )
        with self._db.read() as connection:
            row = connection.execute(statement).first()
        return dict(row._mapping) if row else None

    def add(self, generation: int, kind: str, detail: str) -> None:
        """Notes what a person asked for."""
        with self._db.write("journal", generation) as connection:
            write_entry(connection, generation, self._db.now(connection), kind, detail)
