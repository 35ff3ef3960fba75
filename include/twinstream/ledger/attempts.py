"""Attempts: every try at a group of txids, and the marks that a try leaves on them.

No lock is held while Spark runs: each call is a short transaction whose conditional writes must change exactly the
rows they name, or the attempt has been fenced.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    bindparam,
    func,
    insert,
    select,
    update,
)

from twinstream.errors import Fenced, LedgerSinkMismatch
from twinstream.ledger.database import Database
from twinstream.ledger.journal import write_entry
from twinstream.ledger.leases import Lease, require
from twinstream.ledger.schema import COUNTED, IS_UNCLEAN, attempts, batches, generations
from twinstream.ledger.texts import may_say, says, storable
from twinstream.transaction import (
    Accounting,
    Attempt,
    Manifest,
    Outcome,
    Staged,
    State,
    Tally,
    canonical_json,
)


class Attempts:
    """Starts, ends and looks up attempts."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def start(
        self,
        lease: Lease,
        first: int,
        last: int,
        staging: str,
        context: Mapping[str, str] | None = None,
    ) -> Attempt:
        """Logs a new attempt at txids `first` to `last` before it starts; it fences every lower one."""
        with self._db.write("attempt", lease.generation) as connection:
            require(connection, lease)
            now = self._db.now(connection)
            overlapping = and_(
                attempts.c.generation == lease.generation,
                attempts.c.first_txid <= last,
                attempts.c.last_txid >= first,
            )
            number = (connection.execute(select(func.max(attempts.c.number)).where(overlapping)).scalar() or 0) + 1
            self._supersede(connection, lease.generation, first, last, now)
            row = connection.execute(
                insert(attempts).values(
                    generation=lease.generation, first_txid=first, last_txid=last, number=number, epoch=lease.epoch,
                    holder=lease.holder, outcome=Outcome.RUNNING, staging=staging, started_at=now,
                    context=canonical_json(dict(context)) if context else None,
                )
            )  # fmt: skip
            assert row.inserted_primary_key is not None
            identity = int(row.inserted_primary_key[0])
            changed = connection.execute(
                update(batches)
                .where(
                    *_between(lease.generation, first, last),
                    batches.c.state == State.PLANNED,
                )
                .values(state=State.PROCESSING, attempt=identity)
            ).rowcount
            if changed != last - first + 1:
                raise _fenced(identity, first, last)
        return Attempt(identity, first, last, number, lease.epoch, staging)

    def processed(self, lease: Lease, attempt: Attempt, staged: Staged) -> None:
        """Logs what the attempt staged; raises Fenced if the attempt is not the current one any more."""
        with self._db.write("processed", lease.generation) as connection:
            require(connection, lease)
            self._end(
                connection,
                attempt,
                Outcome.RUNNING,
                Outcome.PROCESSED,
                staged=staged.to_json(),
                ended_at=None,
            )
            self._set_batches(connection, lease.generation, attempt, State.PROCESSING, State.PROCESSED)
            connection.execute(
                update(batches)
                .where(
                    batches.c.generation == lease.generation,
                    batches.c.txid == bindparam("t"),
                )
                .values(
                    input=func.coalesce(batches.c.input, bindparam("read")),
                    accounting=bindparam("counted"),
                    highest_event_time=bindparam("highest"),
                ),
                [
                    {
                        "t": result.txid,
                        "read": json.dumps(result.accounting.read.to_list()),
                        "counted": canonical_json(result.accounting.to_dict()),
                        "highest": result.highest_event_time,
                    }
                    for result in staged.results
                ],
            )

    def hold(self, lease: Lease, attempt: Attempt, reason: str) -> None:
        """The gate refused the attempt's txid: it keeps its staged files and waits for a person."""
        with self._db.write("hold", lease.generation) as connection:
            require(connection, lease)
            now = self._db.now(connection)
            self._set_batches(
                connection,
                lease.generation,
                attempt,
                State.PROCESSED,
                State.HELD,
                held_reason=storable(reason),
            )
            write_entry(connection, lease.generation, now, "held", reason, attempt.first)

    def give_up(self, lease: Lease, attempt: Attempt, outcome: Outcome, error: str) -> None:
        """The attempt ended without a commit; its txids are planned again.

        Only the runner that holds the lease may say so: after a take-over the attempt may be the next one's to commit.
        """
        with self._db.write("give-up", lease.generation) as connection:
            require(connection, lease)
            now = self._db.now(connection)
            connection.execute(
                update(attempts)
                .where(attempts.c.id == attempt.id)
                .where(attempts.c.outcome.in_((Outcome.RUNNING, Outcome.PROCESSED)))
                .values(outcome=outcome, ended_at=now, error=storable(error))
            )
            connection.execute(
                update(batches)
                .where(
                    *_between(lease.generation, attempt.first, attempt.last),
                    batches.c.attempt == attempt.id,
                )
                .where(batches.c.state.in_((State.PROCESSING, State.PROCESSED)))
                .values(state=State.PLANNED, attempt=None)
            )

    def committed(self, generation: int, manifests: Sequence[Manifest], *, recovered: bool = False) -> None:
        """Marks txids that the sink has as COMMITTED and moves the frontier; repeating it changes nothing."""
        first, last = manifests[0].txid, manifests[-1].txid
        if [manifest.txid for manifest in manifests] != list(range(first, last + 1)):
            raise LedgerSinkMismatch(
                f"The sink has not all of txids {first} to {last}.",
                next_step="See 'When ledger and sink disagree' in docs/protocol.md.",
            )
        with self._db.write("committed", generation) as connection:
            now = self._db.now(connection)
            moved = connection.execute(
                update(generations)
                .where(generations.c.id == generation, generations.c.frontier == first - 1)
                .where(generations.c.last_txid >= last)
                .values(frontier=last, watermark=manifests[-1].watermark)
            ).rowcount
            if moved != 1:
                if self._all_committed(connection, generation, manifests):
                    return
                raise LedgerSinkMismatch(
                    f"The sink has committed txids {first} to {last}, which do not follow the ledger's frontier.",
                    next_step="See 'When ledger and sink disagree' in docs/protocol.md.",
                )
            changed = connection.execute(
                update(batches)
                .where(batches.c.generation == generation, batches.c.txid == bindparam("t"))
                .where(batches.c.range_digest == bindparam("seen"))
                .values(
                    state=State.COMMITTED, attempt=bindparam("by"), epoch=bindparam("under"),
                    accounting=bindparam("counted"), **{name: bindparam(f"n_{name}") for name in COUNTED},
                    digest=bindparam("fingerprint"), watermark=bindparam("reached"),
                    highest_event_time=bindparam("highest"), committed_at=now, held_reason=None,
                    input=func.coalesce(batches.c.input, bindparam("read")),
                ),
                [_commit_row(manifest) for manifest in manifests],
            ).rowcount  # fmt: skip
            if changed != len(manifests):
                raise LedgerSinkMismatch(
                    f"The sink has other ranges for some of txids {first} to {last} than the ledger.",
                    next_step="See 'When ledger and sink disagree' in docs/protocol.md.",
                )
            connection.execute(
                update(attempts)
                .where(attempts.c.id.in_({manifest.attempt for manifest in manifests}))
                .where(attempts.c.generation == generation)
                .values(outcome=Outcome.COMMITTED, ended_at=now, cleaned=True)
            )
            if recovered:
                write_entry(
                    connection,
                    generation,
                    now,
                    "recovered",
                    f"txids {first} to {last} were in the sink",
                    last,
                )

    def find(self, attempt: int) -> Attempt:
        with self._db.read() as connection:
            return _attempt(connection.execute(select(attempts).where(attempts.c.id == attempt)).one())

    def of_txid(self, generation: int, txid: int) -> list[dict[str, object]]:
        """Every attempt at a txid, oldest first."""
        statement = (
            select(attempts)
            .where(attempts.c.generation == generation)
            .where(attempts.c.first_txid <= txid, attempts.c.last_txid >= txid)
            .order_by(attempts.c.id)
        )
        with self._db.read() as connection:
            return [
                {name: value for name, value in row._mapping.items() if name not in ("staged", "generation")}
                for row in connection.execute(statement)
            ]

    def newest(self, generation: int, limit: int = 10) -> list[dict[str, object]]:
        statement = (
            select(attempts).where(attempts.c.generation == generation).order_by(attempts.c.id.desc()).limit(limit)
        )
        with self._db.read() as connection:
            return [
                {name: value for name, value in row._mapping.items() if name not in ("staged", "generation")}
                for row in connection.execute(statement)
            ]

    def asked_by(self, generation: int, context: Mapping[str, str]) -> list[Attempt]:
        """Attempts that were made in this context, oldest first."""
        mine = attempts.c.generation == generation
        statement = select(attempts).where(mine, may_say(attempts.c.context, context)).order_by(attempts.c.id)
        with self._db.read() as connection:
            return [_attempt(row) for row in connection.execute(statement) if says(row.context, context)]

    def to_clean(self, generation: int) -> list[Attempt]:
        """Attempts that ended without a commit and whose staging was not removed yet."""
        statement = select(attempts).where(
            attempts.c.generation == generation,
            IS_UNCLEAN,
            attempts.c.outcome.in_((Outcome.FAILED, Outcome.FENCED, Outcome.ABANDONED)),
        )
        with self._db.read() as connection:
            return [_attempt(row) for row in connection.execute(statement)]

    def waiting(self, generation: int) -> list[Attempt]:
        """Attempts that may still be committed."""
        statement = select(attempts).where(
            attempts.c.generation == generation,
            IS_UNCLEAN,
            attempts.c.outcome.in_((Outcome.RUNNING, Outcome.PROCESSED)),
        )
        with self._db.read() as connection:
            return [_attempt(row) for row in connection.execute(statement)]

    def cleaned(self, attempt: Attempt) -> None:
        with self._db.write("cleaned") as connection:
            connection.execute(update(attempts).where(attempts.c.id == attempt.id).values(cleaned=True))

    @staticmethod
    def _supersede(connection: Connection, generation: int, first: int, last: int, now: int) -> None:
        """Ends lower attempts at any of these txids; txids that only such an attempt covered are planned again."""
        lower = connection.execute(
            select(attempts.c.id, attempts.c.outcome, attempts.c.first_txid, attempts.c.last_txid).where(
                attempts.c.generation == generation,
                IS_UNCLEAN,
                attempts.c.first_txid <= last,
                attempts.c.last_txid >= first,
                attempts.c.outcome.in_((Outcome.RUNNING, Outcome.PROCESSED)),
            )
        ).all()
        for row in lower:
            ended = Outcome.FENCED if row.outcome == Outcome.RUNNING else Outcome.ABANDONED
            connection.execute(update(attempts).where(attempts.c.id == row.id).values(outcome=ended, ended_at=now))
            connection.execute(
                update(batches)
                .where(*_between(generation, row.first_txid, row.last_txid), batches.c.attempt == row.id)
                .where(batches.c.state.in_((State.PROCESSING, State.PROCESSED)))
                .values(state=State.PLANNED, attempt=None)
            )

    @staticmethod
    def _end(
        connection: Connection,
        attempt: Attempt,
        before: Outcome,
        after: Outcome,
        **values: object,
    ) -> None:
        changed = connection.execute(
            update(attempts)
            .where(attempts.c.id == attempt.id, attempts.c.outcome == before)
            .values(outcome=after, **values)
        ).rowcount
        if changed != 1:
            raise _fenced(attempt.id, attempt.first, attempt.last)

    @staticmethod
    def _set_batches(
        connection: Connection,
        generation: int,
        attempt: Attempt,
        before: State,
        after: State,
        **values: object,
    ) -> None:
        changed = connection.execute(
            update(batches)
            .where(*_between(generation, attempt.first, attempt.last))
            .where(batches.c.attempt == attempt.id, batches.c.state == before)
            .values(state=after, **values)
        ).rowcount
        if changed != attempt.last - attempt.first + 1:
            raise _fenced(attempt.id, attempt.first, attempt.last)

    @staticmethod
    def _all_committed(connection: Connection, generation: int, manifests: Sequence[Manifest]) -> bool:
        found = connection.execute(
            select(batches.c.txid, batches.c.range_digest).where(
                *_between(generation, manifests[0].txid, manifests[-1].txid),
                batches.c.state == State.COMMITTED,
            )
        ).all()
        return {(row.txid, row.range_digest) for row in found} == {(m.txid, m.range_digest) for m in manifests}


def _between(generation: int, first: int, last: int) -> tuple[ColumnElement[bool], ...]:
    return (
        batches.c.generation == generation,
        batches.c.txid >= first,
        batches.c.txid <= last,
    )


def _commit_row(manifest: Manifest) -> dict[str, object]:
    return {
        "t": manifest.txid,
        "seen": manifest.range_digest,
        "by": manifest.attempt,
        "under": manifest.epoch,
        "counted": canonical_json(manifest.accounting.to_dict()),
        **{f"n_{name}": number for name, number in counted(manifest.accounting).items()},
        "fingerprint": json.dumps(manifest.digest.to_list()),
        "reached": manifest.watermark,
        "highest": manifest.highest_event_time,
        "read": json.dumps(manifest.accounting.read.to_list()),
    }


def counted(accounting: Accounting) -> dict[str, int]:
    """The counts of an accounting by the names of the ledger's columns."""
    found = {name: getattr(accounting, name) for name in COUNTED}
    return {name: value.count if isinstance(value, Tally) else int(value) for name, value in found.items()}


def _fenced(identity: int, first: int, last: int) -> Fenced:
    return Fenced(
        f"Attempt {identity} at txids {first} to {last} is not the current one any more.",
        untouched="Nothing of it was committed.",
        next_step="Nothing to do: a newer attempt goes on.",
    )


def _attempt(row: Row[tuple[object, ...]]) -> Attempt:
    return Attempt(
        id=row.id,
        first=row.first_txid,
        last=row.last_txid,
        number=row.number,
        epoch=row.epoch,
        staging=row.staging,
        outcome=Outcome(row.outcome),
        staged=None if row.staged is None else Staged.from_json(row.staged),
    )
