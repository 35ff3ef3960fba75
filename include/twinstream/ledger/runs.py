"""Runs of the batch layer: every recomputation, reconciliation and repair, with what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, and_, insert, select, update

from twinstream.errors import Fenced, Refused
from twinstream.ledger.database import Database
from twinstream.ledger.schema import runs
from twinstream.ledger.texts import may_say, says, storable
from twinstream.transaction import canonical_json

RUNNING = "running"
DONE = "done"
FAILED = "failed"
CONTINUOUS = "continuous"
"""The kind of a run that streams."""
STREAM_SECONDS = 30.0
"""One that has not shown itself for so long is taken to be dead."""


@dataclass(frozen=True)
class Run:
    """One run, under way or ended."""

    id: int
    generation: int
    kind: str
    frontier: int
    scope: Mapping[str, Any]
    """What part of the result it is about; empty means all of it."""
    definition_hash: str
    state: str
    folder: str | None
    holder: str
    started_at: int
    ended_at: int | None = None
    error: str | None = None
    result: Mapping[str, Any] | None = None
    expires_at: int = 0
    """Until when it counts as alive, unless it shows itself again."""
    context: Mapping[str, str] = field(default_factory=dict)
    """Who asked for it."""


@dataclass(frozen=True)
class Wanted:
    """A run that is to be started."""

    generation: int
    kind: str
    frontier: int
    definition_hash: str
    scope: Mapping[str, Any]
    folder: str | None = None


class Runs:
    """Starts, ends and looks up runs."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def start(
        self,
        wanted: Wanted,
        holder: str,
        seconds: float,
        *,
        is_dead: Callable[[str], bool] = lambda _: False,
        alone: bool = False,
        context: Mapping[str, str] | None = None,
    ) -> Run:
        """Logs a run before it starts; with `alone` it is refused while another one of its kind is alive.

        A run of the same kind that was left half done is taken over with its folder, so that its work is not lost.
        """
        with self._db.write("run", wanted.generation) as connection:
            now = self._db.now(connection)
            expires = now + int(seconds * 1_000_000)
            for row in self._unfinished(connection, wanted):
                if row.state == RUNNING and row.expires_at > now and not is_dead(row.holder):
                    if alone:
                        raise Refused(
                            f"Another {wanted.kind} of this pipeline is running ({row.holder}).",
                            next_step="Wait until it is done, then run the command again.",
                        )
                elif self._is_same(row, wanted):
                    connection.execute(
                        update(runs)
                        .where(runs.c.id == row.id)
                        .values(
                            state=RUNNING,
                            holder=holder,
                            expires_at=expires,
                            error=None,
                            ended_at=None,
                            context=canonical_json(dict(context)) if context else row.context,
                        )
                    )
                    return self._get(connection, row.id)
            added = connection.execute(
                insert(runs).values(
                    generation=wanted.generation, kind=wanted.kind, frontier=wanted.frontier,
                    scope=canonical_json(dict(wanted.scope)), definition_hash=wanted.definition_hash, state=RUNNING,
                    folder=wanted.folder, holder=holder, expires_at=expires, started_at=now,
                    context=canonical_json(dict(context)) if context else None,
                )
            )  # fmt: skip
            assert added.inserted_primary_key is not None
            return self._get(connection, int(added.inserted_primary_key[0]))

    def renew(self, run: Run, seconds: float) -> None:
        """Shows that the run is alive; raises Fenced if another process took it over."""
        with self._db.write("run-renew") as connection:
            expires = self._db.now(connection) + int(seconds * 1_000_000)
            self._change(connection, run, expires_at=expires)

    def note(self, run: Run, result: Mapping[str, Any]) -> None:
        """Keeps what the run has done so far."""
        with self._db.write("run-note") as connection:
            self._change(connection, run, result=canonical_json(dict(result)))

    def finish(self, run: Run, result: Mapping[str, Any]) -> None:
        with self._db.write("run-done") as connection:
            now = self._db.now(connection)
            self._change(connection, run, state=DONE, ended_at=now, result=canonical_json(dict(result)))

    def fail(self, run: Run, error: str) -> None:
        with self._db.write("run-failed") as connection:
            now = self._db.now(connection)
            self._change(connection, run, state=FAILED, ended_at=now, error=storable(error))

    def get(self, run: int) -> Run:
        with self._db.read() as connection:
            return self._get(connection, run)

    def done(self, generation: int, kind: str, at_most: int | None = None, limit: int = 100) -> list[Run]:
        """Runs that ended well, newest first; `at_most` limits their frontier."""
        statement = select(runs).where(runs.c.generation == generation, runs.c.kind == kind, runs.c.state == DONE)
        if at_most is not None:
            statement = statement.where(runs.c.frontier <= at_most)
        with self._db.read() as connection:
            return [_run(row) for row in connection.execute(statement.order_by(runs.c.id.desc()).limit(limit))]

    def ended(self, generation: int, kind: str) -> list[Run]:
        """Runs that ended, well or not."""
        mine = and_(runs.c.generation == generation, runs.c.kind == kind, runs.c.state.in_((DONE, FAILED)))
        with self._db.read() as connection:
            return [_run(row) for row in connection.execute(select(runs).where(mine).order_by(runs.c.id))]

    def newest(self, generation: int, limit: int = 20) -> list[Run]:
        """The newest runs of any kind and state."""
        statement = select(runs).where(runs.c.generation == generation).order_by(runs.c.id.desc()).limit(limit)
        with self._db.read() as connection:
            return [_run(row) for row in connection.execute(statement)]

    def alive(self, generation: int, kind: str) -> tuple[int, list[Run]]:
        """The database's time, and the runs of a kind that are under way and have shown themselves, newest first."""
        mine = and_(runs.c.generation == generation, runs.c.kind == kind, runs.c.state == RUNNING)
        with self._db.read() as connection:
            now = self._db.now(connection)
            found = connection.execute(select(runs).where(mine, runs.c.expires_at > now).order_by(runs.c.id.desc()))
            return now, [_run(row) for row in found]

    def asked_by(self, kind: str, context: Mapping[str, str]) -> list[Run]:
        """Runs of a kind that were asked for in this context, newest first."""
        statement = select(runs).where(runs.c.kind == kind, may_say(runs.c.context, context)).order_by(runs.c.id.desc())
        with self._db.read() as connection:
            return [_run(row) for row in connection.execute(statement) if says(row.context, context)]

    @staticmethod
    def _unfinished(connection: Connection, wanted: Wanted) -> list[Row[Any]]:
        mine = and_(runs.c.generation == wanted.generation, runs.c.kind == wanted.kind)
        statement = select(runs).where(mine, runs.c.state.in_((RUNNING, FAILED))).order_by(runs.c.id.desc())
        return list(connection.execute(statement))

    @staticmethod
    def _is_same(row: Row[Any], wanted: Wanted) -> bool:
        return bool(
            row.frontier == wanted.frontier
            and row.definition_hash == wanted.definition_hash
            and json.loads(row.scope) == dict(wanted.scope)
        )

    @staticmethod
    def _change(connection: Connection, run: Run, **values: object) -> None:
        changed = connection.execute(
            update(runs)
            .where(runs.c.id == run.id, runs.c.holder == run.holder, runs.c.state == RUNNING)
            .values(**values)
        ).rowcount
        if changed != 1:
            raise taken_over(run)

    @staticmethod
    def _get(connection: Connection, run: int) -> Run:
        return _run(connection.execute(select(runs).where(runs.c.id == run)).one())


def taken_over(run: Run) -> Fenced:
    """What a process is told whose run was taken over."""
    return Fenced(
        f"Another process has taken this {run.kind} over; this one stops.",
        untouched="Nothing of its unfinished work counts.",
        next_step="Nothing to do: the other process goes on.",
    )


def _run(row: Row[Any]) -> Run:
    values = dict(row._mapping)
    values["context"] = json.loads(values["context"]) if values["context"] else {}
    values["scope"] = json.loads(values["scope"])
    values["result"] = json.loads(values["result"]) if values["result"] else None
    return Run(**values)
