"""Batches: the plan. A range is here before anything reads it, and never changes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from sqlalchemy import Connection, Row, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from twinstream.errors import Refused
from twinstream.ledger.database import Database
from twinstream.ledger.journal import write_entry
from twinstream.ledger.schema import (
    COUNTED,
    IS_OPEN,
    attempts,
    batches,
    claims,
    folders,
    generations,
)
from twinstream.ledger.texts import storable
from twinstream.transaction import (
    Accounting,
    Batch,
    Outcome,
    Range,
    State,
    Tally,
    canonical_json,
)


class PlanRaced(Exception):
    """Another planner was faster: list again and plan what is left."""


@dataclass(frozen=True)
class Planned:
    """A range to be planned; reinjected late rows are exempt from lateness."""

    range: Range
    exempt: bool = False


class Batches:
    """Plans txids, looks them up, and carries out what people decide about them."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def plan(
        self,
        generation: int,
        expected_last: int,
        planned: Sequence[Planned],
        definition_hash: str,
        seen_folders: Sequence[tuple[str, int]] = (),
        why: tuple[str, str] | None = None,
    ) -> range:
        """Logs the next txids with their ranges in one step, or raises PlanRaced and logs nothing.

        `seen_folders` are folders whose files are all planned now, with the time of their last change: as long as
        that stays the same there is nothing new in them.
        """
        first = expected_last + 1
        try:
            with self._db.write("plan", generation) as connection:
                now = self._db.now(connection)
                moved = connection.execute(
                    update(generations)
                    .where(
                        generations.c.id == generation,
                        generations.c.last_txid == expected_last,
                    )
                    .values(last_txid=expected_last + len(planned))
                ).rowcount
                if moved != 1:
                    raise PlanRaced
                if planned:
                    connection.execute(
                        insert(batches),
                        [_row(generation, first + n, item, now, definition_hash) for n, item in enumerate(planned)],
                    )
                claimed = [
                    {
                        "generation": generation,
                        "folder": folder,
                        "name": name,
                        "txid": first + n,
                    }
                    for n, item in enumerate(planned)
                    for folder, name in map(split_claim, item.range.claims)
                ]
                if claimed:
                    connection.execute(insert(claims), claimed)
                for folder, modified in seen_folders:
                    _remember_folder(connection, generation, folder, modified)
                if why is not None:
                    write_entry(connection, generation, now, why[0], why[1], first)
        except IntegrityError as error:
            raise PlanRaced from error
        return range(first, first + len(planned))

    def get(self, generation: int, first: int, last: int) -> list[Batch]:
        """The batches from txid `first` to `last`, in order."""
        statement = (
            select(batches)
            .where(
                batches.c.generation == generation,
                batches.c.txid >= first,
                batches.c.txid <= last,
            )
            .order_by(batches.c.txid)
        )
        with self._db.read() as connection:
            return [_batch(row) for row in connection.execute(statement)]

    def open(self, generation: int, limit: int = 10_000) -> list[Batch]:
        """The batches that are not committed yet, in order."""
        statement = (
            select(batches).where(batches.c.generation == generation, IS_OPEN).order_by(batches.c.txid).limit(limit)
        )
        with self._db.read() as connection:
            return [_batch(row) for row in connection.execute(statement)]

    def digests(self, generation: int, first: int, last: int) -> dict[int, Tally]:
        """What was logged of the rows of committed txids."""
        statement = select(batches.c.txid, batches.c.digest).where(
            batches.c.generation == generation, batches.c.txid >= first, batches.c.txid <= last,
            batches.c.state == State.COMMITTED,
        )  # fmt: skip
        with self._db.read() as connection:
            return {row.txid: Tally.from_list(json.loads(row.digest)) for row in connection.execute(statement)}

    def backlog(self, generation: int) -> tuple[int, int, int, int | None]:
        """Uncommitted txids, their records, their bytes, and when the oldest was planned."""
        statement = select(
            func.count(),
            func.coalesce(func.sum(batches.c.records), 0),
            func.coalesce(func.sum(batches.c.bytes), 0),
            func.min(batches.c.batch_time),
        ).where(batches.c.generation == generation, IS_OPEN)
        with self._db.read() as connection:
            count, records, size, oldest = connection.execute(statement).one()
            return int(count), int(records), int(size), oldest

    def totals(self, generation: int) -> dict[str, int]:
        """Committed records by class."""
        sums = [func.coalesce(func.sum(batches.c[name]), 0) for name in COUNTED]
        statement = select(*sums).where(batches.c.generation == generation, batches.c.state == State.COMMITTED)
        with self._db.read() as connection:
            found = dict(zip(COUNTED, map(int, connection.execute(statement).one()), strict=True))
        return {"read": sum(n for name, n in found.items() if name != "rows_out")} | found

    def known_folders(self, generation: int) -> dict[str, int]:
        """Folders whose files were all planned, with the time of the last change they had."""
        statement = select(folders.c.folder, folders.c.modified).where(folders.c.generation == generation)
        with self._db.read() as connection:
            return {row.folder: row.modified for row in connection.execute(statement)}

    def claimed(self, generation: int, folder: str) -> set[str]:
        """Names in `folder` that belong to a txid already."""
        statement = select(claims.c.name).where(claims.c.generation == generation, claims.c.folder == folder)
        with self._db.read() as connection:
            return set(connection.execute(statement).scalars())

    def claim_of(self, generation: int, claim: str) -> int | None:
        """The txid that a name belongs to."""
        folder, name = split_claim(claim)
        statement = select(claims.c.txid).where(
            claims.c.generation == generation,
            claims.c.folder == folder,
            claims.c.name == name,
        )
        with self._db.read() as connection:
            return connection.execute(statement).scalar()

    def reinjected(self, generation: int) -> list[Batch]:
        """The batches that people brought back, in order."""
        inside = select(claims.c.txid).where(claims.c.generation == generation, claims.c.folder == "reinjected")
        statement = select(batches).where(batches.c.generation == generation, batches.c.txid.in_(inside))
        with self._db.read() as connection:
            return [_batch(row) for row in connection.execute(statement.order_by(batches.c.txid))]

    def committed_before(self, generation: int, txid: int, moment: int) -> bool:
        """Whether a txid was committed before a moment."""
        statement = select(batches.c.committed_at).where(batches.c.generation == generation, batches.c.txid == txid)
        with self._db.read() as connection:
            at = connection.execute(statement).scalar()
            return at is not None and at < moment

    def release(self, generation: int, txid: int, reason: str) -> None:
        """A person lets a held txid pass; it commits with the next drain."""
        with self._db.write("release", generation) as connection:
            changed = connection.execute(
                update(batches)
                .where(
                    batches.c.generation == generation,
                    batches.c.txid == txid,
                    batches.c.state == State.HELD,
                )
                .values(state=State.PROCESSED, waived=True, held_reason=None)
            ).rowcount
            if changed != 1:
                raise Refused(
                    f"Txid {txid} is not held.",
                    next_step="`twinstream status` shows which txids are held.",
                )
            write_entry(
                connection,
                generation,
                self._db.now(connection),
                "released",
                reason,
                txid,
            )

    def discard(self, generation: int, txid: int, reason: str) -> None:
        """A person gives up a txid that is held or that failed: it will commit empty, counted as discarded."""
        with self._db.write("discard", generation) as connection:
            row = connection.execute(
                select(batches.c.state, batches.c.attempt).where(
                    batches.c.generation == generation, batches.c.txid == txid
                )
            ).first()
            if row is None or not (row.state == State.HELD or self._failed(connection, generation, txid, row.state)):
                raise Refused(
                    f"Txid {txid} is neither held nor failed, so it is not discarded.",
                    next_step="`twinstream status` shows which txids are held or failed.",
                )
            now = self._db.now(connection)
            if row.attempt is not None:
                connection.execute(
                    update(attempts)
                    .where(
                        attempts.c.id == row.attempt,
                        attempts.c.outcome == Outcome.PROCESSED,
                    )
                    .values(outcome=Outcome.ABANDONED, ended_at=now)
                )
            connection.execute(
                update(batches)
                .where(batches.c.generation == generation, batches.c.txid == txid)
                .values(
                    state=State.PLANNED,
                    attempt=None,
                    discard_reason=storable(reason),
                    held_reason=None,
                )
            )
            write_entry(connection, generation, now, "discarded", reason, txid)

    @staticmethod
    def _failed(connection: Connection, generation: int, txid: int, state: str) -> bool:
        """Whether the txid's newest attempt failed, and it alone was in it: in a group any other could be at fault."""
        newest = connection.execute(
            select(attempts.c.outcome, attempts.c.first_txid, attempts.c.last_txid)
            .where(attempts.c.generation == generation)
            .where(attempts.c.first_txid <= txid, attempts.c.last_txid >= txid)
            .order_by(attempts.c.id.desc())
            .limit(1)
        ).first()
        alone = newest is not None and newest.first_txid == newest.last_txid
        return state == State.PLANNED and newest is not None and alone and newest.outcome == Outcome.FAILED


def split_claim(claim: str) -> tuple[str, str]:
    """A claim is a path: its folder and its name."""
    path = PurePosixPath(claim)
    return str(path.parent), path.name


def _remember_folder(connection: Connection, generation: int, folder: str, modified: int) -> None:
    changed = connection.execute(
        update(folders).where(folders.c.generation == generation, folders.c.folder == folder).values(modified=modified)
    ).rowcount
    if not changed:
        connection.execute(insert(folders).values(generation=generation, folder=folder, modified=modified))


def _row(generation: int, txid: int, item: Planned, now: int, definition_hash: str) -> dict[str, object]:
    return {
        "generation": generation,
        "txid": txid,
        "state": State.PLANNED,
        "range": canonical_json(item.range.to_dict()),
        "range_digest": item.range.digest,
        "records": item.range.records,
        "bytes": item.range.size,
        "batch_time": now,
        "definition_hash": definition_hash,
        "exempt": item.exempt,
    }


def _batch(row: Row[tuple[object, ...]]) -> Batch:
    return Batch(
        txid=row.txid,
        state=State(row.state),
        range=Range.from_dict(json.loads(row.range)),
        range_digest=row.range_digest,
        batch_time=row.batch_time,
        exempt=bool(row.exempt),
        attempt=row.attempt,
        input=None if row.input is None else Tally.from_list(json.loads(row.input)),
        waived=bool(row.waived),
        discard_reason=row.discard_reason,
        held_reason=row.held_reason,
        accounting=None if row.accounting is None else Accounting.from_dict(json.loads(row.accounting)),
        watermark=row.watermark,
        highest_event_time=row.highest_event_time,
        epoch=row.epoch,
        committed_at=row.committed_at,
    )
