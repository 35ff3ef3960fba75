"""Generations: the lives of a pipeline, and which of them is the one that readers see."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from sqlalchemy import Connection, Row, and_, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from twinstream.errors import LedgerSinkMismatch, Refused
from twinstream.ledger.database import Database
from twinstream.ledger.journal import write_entry
from twinstream.ledger.schema import claims, generations, leases

CURRENT = "current"
BUILDING = "building"
RETIRED = "retired"
DROPPED = "dropped"


@dataclass(frozen=True)
class Generation:
    """One life of a pipeline from its first record under one definition."""

    id: int
    pipeline: str
    number: int
    uid: str
    state: str
    definition_hash: str
    definition: str
    last_txid: int
    frontier: int
    watermark: int | None
    bytes_per_second: float | None

    @property
    def name(self) -> str:
        """Names its paths and its application ids; never used twice, even if the ledger is made anew."""
        return f"g{self.number}-{self.uid}"


class Generations:
    """Opens, builds, adopts and promotes generations."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def current(self, pipeline: str) -> Generation | None:
        with self._db.read() as connection:
            return self._find(connection, pipeline, CURRENT)

    def get(self, generation: int) -> Generation:
        with self._db.read() as connection:
            return self._get(connection, generation)

    def of(self, pipeline: str) -> list[Generation]:
        """All generations of a pipeline, oldest first."""
        statement = select(generations).where(generations.c.pipeline == pipeline).order_by(generations.c.number)
        with self._db.read() as connection:
            return [_generation(row) for row in connection.execute(statement)]

    def open(self, pipeline: str, definition_hash: str, definition: str) -> Generation:
        """The current generation, or the first one if the pipeline has none; safe when two start at once."""
        return self.current(pipeline) or self._add(pipeline, CURRENT, definition_hash, definition)

    def build(self, pipeline: str, definition_hash: str, definition: str) -> Generation:
        """The generation that is being built under this definition, or a new one beside the current one."""
        with self._db.read() as connection:
            found = self._find(connection, pipeline, BUILDING)
        if found is not None and found.definition_hash == definition_hash:
            return found
        return self._add(pipeline, BUILDING, definition_hash, definition)

    def adopt(self, pipeline: str, number: int, uid: str, definition_hash: str, definition: str) -> Generation:
        """A generation that the sink has and this ledger lost; it takes the place of an older one."""
        try:
            with self._db.write("generation") as connection:
                self._db.lock_pipeline(connection, pipeline)
                old = self._find(connection, pipeline, CURRENT)
                if old is not None:
                    self._retire(connection, old.id)
                return self._insert(connection, pipeline, number, uid, CURRENT, definition_hash, definition)
        except IntegrityError as error:
            raise LedgerSinkMismatch(
                f"The ledger has another generation {number} of {pipeline} than the sink (g{number}-{uid}).",
                next_step="See 'When ledger and sink disagree' in docs/protocol.md.",
            ) from error

    def promote(self, generation: Generation) -> None:
        """Makes a built generation the one that readers see, in one step, and fences the old one's runner.

        Refused while its source position is behind the old one's: readers would see less than before.
        """
        with self._db.write("promote") as connection:
            self._db.lock_pipeline(connection, generation.pipeline)
            old = self._find(connection, generation.pipeline, CURRENT)
            if old is not None:
                self._db.lock_generation(connection, old.id)
                behind = _missing_claims(connection, old.id, generation.id)
                if behind > 0:
                    raise Refused(
                        f"Generation {generation.number} is behind generation {old.number}: {behind} of its files are "
                        "not committed in the new one yet.",
                        next_step=f"Run `twinstream replay {generation.pipeline}` again.",
                    )
                self._retire(connection, old.id)
            changed = connection.execute(
                update(generations)
                .where(generations.c.id == generation.id, generations.c.state == BUILDING)
                .values(state=CURRENT)
            ).rowcount
            if changed != 1:
                raise Refused(f"Generation {generation.number} is not being built any more.")
            write_entry(
                connection, generation.id, self._db.now(connection), "promoted", f"generation {generation.number}"
            )

    def drop(self, pipeline: str, number: int) -> Generation:
        """Marks a retired generation as dropped, before anything of it is deleted; repeating it changes nothing."""
        with self._db.write("drop") as connection:
            self._db.lock_pipeline(connection, pipeline)
            row = connection.execute(
                select(generations).where(generations.c.pipeline == pipeline, generations.c.number == number)
            ).first()
            if row is None:
                raise Refused(f"{pipeline} has no generation {number}.", next_step="See `twinstream status`.")
            found = _generation(row)
            if found.state not in (RETIRED, DROPPED):
                raise Refused(
                    f"Generation {number} of {pipeline} is {found.state}; only one that was retired can be dropped.",
                    next_step="Promote another generation first.",
                )
            if found.state == RETIRED:
                connection.execute(update(generations).where(generations.c.id == found.id).values(state=DROPPED))
                write_entry(connection, found.id, self._db.now(connection), "dropped", f"generation {number}")
            return self._get(connection, found.id)

    def _add(self, pipeline: str, state: str, definition_hash: str, definition: str) -> Generation:
        """Adds a generation, unless another process was faster; a building one with another definition gives way."""
        with self._db.write("generation") as connection:
            self._db.lock_pipeline(connection, pipeline)
            found = self._find(connection, pipeline, state)
            if found is not None and (state == CURRENT or found.definition_hash == definition_hash):
                return found
            if found is not None:
                self._retire(connection, found.id)
            newest = select(func.max(generations.c.number)).where(generations.c.pipeline == pipeline)
            number = (connection.execute(newest).scalar() or 0) + 1
            uid = secrets.token_hex(4)
            return self._insert(connection, pipeline, number, uid, state, definition_hash, definition)

    def _insert(
        self,
        connection: Connection,
        pipeline: str,
        number: int,
        uid: str,
        state: str,
        definition_hash: str,
        definition: str,
    ) -> Generation:
        row = connection.execute(
            insert(generations).values(
                pipeline=pipeline, number=number, uid=uid, state=state, definition_hash=definition_hash,
                definition=definition, created_at=self._db.now(connection),
            )
        )  # fmt: skip
        assert row.inserted_primary_key is not None
        return self._get(connection, int(row.inserted_primary_key[0]))

    @staticmethod
    def _retire(connection: Connection, generation: int) -> None:
        """Readers do not see it any more, and whoever runs it is fenced."""
        connection.execute(update(generations).where(generations.c.id == generation).values(state=RETIRED))
        connection.execute(
            update(leases).where(leases.c.generation == generation).values(epoch=leases.c.epoch + 1, expires_at=0)
        )

    def note_rate(self, generation: int, bytes_per_second: float) -> None:
        """Keeps what the rate controller learned for the next run."""
        with self._db.write("rate") as connection:
            connection.execute(
                update(generations).where(generations.c.id == generation).values(bytes_per_second=bytes_per_second)
            )

    @staticmethod
    def _get(connection: Connection, generation: int) -> Generation:
        return _generation(connection.execute(select(generations).where(generations.c.id == generation)).one())

    @staticmethod
    def _find(connection: Connection, pipeline: str, state: str) -> Generation | None:
        row = connection.execute(
            select(generations).where(generations.c.pipeline == pipeline, generations.c.state == state)
        ).first()
        return None if row is None else _generation(row)


def _missing_claims(connection: Connection, old: int, new: int) -> int:
    """How many names the old generation has committed that the new one has not."""
    theirs, ours = claims.alias("theirs"), claims.alias("ours")
    committed = select(generations.c.frontier).where(generations.c.id == new).scalar_subquery()
    frontier = select(generations.c.frontier).where(generations.c.id == old).scalar_subquery()
    same = and_(ours.c.generation == new, ours.c.folder == theirs.c.folder, ours.c.name == theirs.c.name)
    missing = (
        select(func.count())
        .select_from(theirs.outerjoin(ours, and_(same, ours.c.txid <= committed)))
        .where(theirs.c.generation == old, theirs.c.txid <= frontier, ours.c.txid.is_(None))
    )
    return int(connection.execute(missing).scalar_one())


def _generation(row: Row[tuple[object, ...]]) -> Generation:
    values = {name: value for name, value in row._mapping.items() if name != "created_at"}
    return Generation(**values)
