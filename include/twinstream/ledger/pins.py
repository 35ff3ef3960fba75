"""Pins keep what a long reader needs, removals say which files are to be deleted and when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import delete, func, insert, select

from twinstream.ledger.database import Database
from twinstream.ledger.schema import pins, removals


class Pins:
    """Pins frontiers and logs what may be deleted when."""

    def __init__(self, database: Database) -> None:
        self._db = database

    @contextmanager
    def hold(self, generation: int, frontier: int, purpose: str, seconds: float = 24 * 3600.0) -> Iterator[None]:
        """Nothing that a read at or after `frontier` needs is removed while this is held; a crash lets it expire."""
        with self._db.write("pin") as connection:
            expires = self._db.now(connection) + int(seconds * 1_000_000)
            row = connection.execute(
                insert(pins).values(
                    generation=generation,
                    frontier=frontier,
                    purpose=purpose,
                    expires_at=expires,
                )
            )
            assert row.inserted_primary_key is not None
            identity = row.inserted_primary_key[0]
        try:
            yield
        finally:
            with self._db.write("unpin") as connection:
                connection.execute(delete(pins).where(pins.c.id == identity))

    def lowest(self, generation: int) -> int | None:
        """The lowest pinned frontier, or None."""
        with self._db.read() as connection:
            now = self._db.now(connection)
            return connection.execute(
                select(func.min(pins.c.frontier)).where(pins.c.generation == generation, pins.c.expires_at > now)
            ).scalar()

    def remove_later(self, generation: int, paths: Sequence[str], seconds: float) -> None:
        """Logs files that no snapshot names any more, to be deleted when every reader is surely done."""
        with self._db.write("remove-later", generation) as connection:
            after = self._db.now(connection) + int(seconds * 1_000_000)
            known = set(
                connection.execute(select(removals.c.path).where(removals.c.generation == generation)).scalars()
            )
            rows = [{"generation": generation, "path": p, "delete_after": after} for p in paths if p not in known]
            if rows:
                connection.execute(insert(removals), rows)

    def to_delete(self, generation: int) -> list[str]:
        with self._db.read() as connection:
            now = self._db.now(connection)
            return list(
                connection.execute(
                    select(removals.c.path).where(
                        removals.c.generation == generation,
                        removals.c.delete_after <= now,
                    )
                ).scalars()
            )

    def deleted(self, generation: int, paths: Sequence[str]) -> None:
        with self._db.write("deleted") as connection:
            for path in paths:
                connection.execute(delete(removals).where(removals.c.generation == generation, removals.c.path == path))
