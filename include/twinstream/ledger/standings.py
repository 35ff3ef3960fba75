"""Where all pipelines stand, in a number of queries that does not grow with pipelines, txids or runs.

Txids are planned without gaps and committed in order, so that the rows just around the frontier say what a scan would.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, ScalarSelect, and_, func, select

from twinstream.ledger.database import Database
from twinstream.ledger.generations import CURRENT
from twinstream.ledger.journal import PAUSED, RESUMED
from twinstream.ledger.runs import CONTINUOUS, DONE, FAILED, RUNNING, STREAM_SECONDS
from twinstream.ledger.schema import attempts, batches, generations, journal, leases, runs
from twinstream.ledger.verdicts import KIND, WHOLE, Judged, columns, judged
from twinstream.transaction import Outcome, State

LOOKED_AT = 2_000
"""How many open txids are looked at one by one; work goes on in their order, so that those beyond are planned."""


@dataclass(frozen=True)
class Streamed:
    """The newest continuous run of a generation."""

    run: int
    state: str
    holder: str
    started_at: int
    seen_at: int
    """When it last showed itself."""
    live: bool
    error: str | None
    ended_at: int | None
    facts: Mapping[str, Any]
    """What it says of itself: every, behind, records_per_second, seconds."""
    context: Mapping[str, str]

    @property
    def silent(self) -> bool:
        """Whether it died or hangs: it did not end, and does not show itself."""
        return self.state == RUNNING and not self.live

    @property
    def failed(self) -> bool:
        return self.state == FAILED


@dataclass(frozen=True)
class Standing:
    """One pipeline's current generation."""

    pipeline: str
    generation: int
    number: int
    definition_hash: str
    frontier: int
    last_txid: int
    watermark: int | None
    committed_at: int | None
    """When the frontier was committed."""
    waiting_since: int | None
    """When the oldest open txid was planned."""
    runner: str | None
    epoch: int
    states: Mapping[str, int] = field(default_factory=dict)
    """Open txids by state."""
    failure: str | None = None
    """The error of the newest attempt at the oldest open txid, where it failed."""
    paused: str | None = None
    """Why, where it is paused."""
    group_records: int = 0
    group_micros: int = 0
    """The last committed group: how many records, and how long it took."""
    verdict: Judged | None = None
    streamed: Streamed | None = None


def standings(database: Database, pipeline: str | None = None) -> tuple[int, list[Standing]]:
    """The database's time, and every pipeline that was ever run (or one), by name."""
    chosen = generations.c.state == CURRENT
    if pipeline is not None:
        chosen = and_(chosen, generations.c.pipeline == pipeline)
    with database.read() as connection:
        now = database.now(connection)
        states = _states(connection, chosen)
        failures = _failures(connection, chosen)
        pauses = _pauses(connection, chosen)
        groups = _groups(connection, chosen)
        verdicts = _verdicts(connection, chosen, database.dialect)
        streams = _streams(connection, chosen, now)
        found = []
        for row in _current(connection, chosen):
            records, micros = groups.get(row.id, (0, 0))
            found.append(
                Standing(
                    row.pipeline, row.id, row.number, row.definition_hash, row.frontier, row.last_txid, row.watermark,
                    row.committed_at, row.waiting_since,
                    runner=row.holder if row.expires_at is not None and row.expires_at > now else None,
                    epoch=row.epoch or 0,
                    states=_with_planned(states.get(row.id, {}), row.last_txid - row.frontier),
                    failure=failures.get(row.id),
                    paused=pauses.get(row.id),
                    group_records=records,
                    group_micros=micros,
                    verdict=verdicts.get(row.id),
                    streamed=streams.get(row.id),
                )
            )  # fmt: skip
        return now, found


def _current(connection: Connection, chosen: ColumnElement[bool]) -> list[Row[Any]]:
    done, waiting = batches.alias("done"), batches.alias("waiting")
    statement = (
        select(
            generations.c.id, generations.c.pipeline, generations.c.number, generations.c.definition_hash,
            generations.c.frontier, generations.c.last_txid, generations.c.watermark, done.c.committed_at,
            waiting.c.batch_time.label("waiting_since"), leases.c.holder, leases.c.epoch, leases.c.expires_at,
        )
        .select_from(generations)
        .outerjoin(done, and_(done.c.generation == generations.c.id, done.c.txid == generations.c.frontier))
        .outerjoin(
            waiting, and_(waiting.c.generation == generations.c.id, waiting.c.txid == generations.c.frontier + 1)
        )
        .outerjoin(leases, leases.c.generation == generations.c.id)
        .where(chosen)
        .order_by(generations.c.pipeline)
    )  # fmt: skip
    return list(connection.execute(statement))


def _states(connection: Connection, chosen: ColumnElement[bool]) -> dict[int, dict[str, int]]:
    statement = (
        select(generations.c.id, batches.c.state, func.count().label("many"))
        .select_from(generations)
        .join(
            batches,
            and_(
                batches.c.generation == generations.c.id,
                batches.c.txid > generations.c.frontier,
                batches.c.txid <= generations.c.frontier + LOOKED_AT,
            ),
        )
        .where(chosen)
        .group_by(generations.c.id, batches.c.state)
    )
    found: dict[int, dict[str, int]] = {}
    for row in connection.execute(statement):
        found.setdefault(row.id, {})[row.state] = int(row.many)
    return found


def _with_planned(states: Mapping[str, int], waiting: int) -> dict[str, int]:
    beyond = waiting - sum(states.values())
    planned = states.get(State.PLANNED, 0) + max(0, beyond)
    return {**states, State.PLANNED.value: planned} if planned else dict(states)


def _failures(connection: Connection, chosen: ColumnElement[bool]) -> dict[int, str]:
    tried = attempts.alias("tried")
    newest: ScalarSelect[Any] = (
        select(tried.c.id)
        .where(tried.c.generation == generations.c.id, tried.c.last_txid > generations.c.frontier)
        .where(tried.c.first_txid <= generations.c.frontier + 1)
        .order_by(tried.c.id.desc())
        .limit(1)
        .correlate(generations)
        .scalar_subquery()
    )
    statement = (
        select(generations.c.id, attempts.c.error)
        .select_from(generations)
        .join(attempts, attempts.c.id == newest)
        .where(chosen, attempts.c.outcome == Outcome.FAILED)
    )
    return {row.id: row.error or "It failed without a word." for row in connection.execute(statement)}


def _pauses(connection: Connection, chosen: ColumnElement[bool]) -> dict[int, str]:
    entry = journal.alias("entry")
    newest: ScalarSelect[Any] = (
        select(entry.c.id)
        .where(entry.c.generation == generations.c.id, entry.c.kind.in_((PAUSED, RESUMED)))
        .order_by(entry.c.id.desc())
        .limit(1)
        .correlate(generations)
        .scalar_subquery()
    )
    statement = (
        select(generations.c.id, journal.c.detail)
        .select_from(generations)
        .join(journal, journal.c.id == newest)
        .where(chosen, journal.c.kind == PAUSED)
    )
    return {row.id: row.detail for row in connection.execute(statement)}


def _groups(connection: Connection, chosen: ColumnElement[bool]) -> dict[int, tuple[int, int]]:
    """The group that was committed last: its records, and how long it took."""
    last, member = batches.alias("last"), batches.alias("member")
    records: ScalarSelect[Any] = (
        select(func.sum(member.c.records))
        .where(member.c.generation == generations.c.id)
        .where(member.c.txid >= attempts.c.first_txid, member.c.txid <= attempts.c.last_txid)
        .correlate(generations, attempts)
        .scalar_subquery()
    )
    statement = (
        select(generations.c.id, attempts.c.started_at, attempts.c.ended_at, records.label("records"))
        .select_from(generations)
        .join(last, and_(last.c.generation == generations.c.id, last.c.txid == generations.c.frontier))
        .join(attempts, and_(attempts.c.id == last.c.attempt, attempts.c.generation == generations.c.id))
        .where(chosen)
    )
    return {
        row.id: (int(row.records or 0), row.ended_at - row.started_at)
        for row in connection.execute(statement)
        if row.ended_at is not None
    }


def _verdicts(connection: Connection, chosen: ColumnElement[bool], dialect: str) -> dict[int, Judged]:
    """The newest reconciliation of the whole result that ended well."""
    run = runs.alias("run")
    newest: ScalarSelect[Any] = (
        select(run.c.id)
        .where(run.c.generation == generations.c.id, run.c.kind == KIND)
        .where(run.c.state == DONE, run.c.scope == WHOLE)
        .order_by(run.c.id.desc())
        .limit(1)
        .correlate(generations)
        .scalar_subquery()
    )
    statement = select(*columns(dialect)).select_from(generations).join(runs, runs.c.id == newest).where(chosen)
    return {row.generation: judged(row) for row in connection.execute(statement)}


def _streams(connection: Connection, chosen: ColumnElement[bool], now: int) -> dict[int, Streamed]:
    run = runs.alias("run")
    newest: ScalarSelect[Any] = (
        select(run.c.id)
        .where(run.c.generation == generations.c.id, run.c.kind == CONTINUOUS)
        .order_by(run.c.id.desc())
        .limit(1)
        .correlate(generations)
        .scalar_subquery()
    )
    statement = select(runs).select_from(generations).join(runs, runs.c.id == newest).where(chosen)
    return {
        row.generation: Streamed(
            row.id, row.state, row.holder, row.started_at, row.expires_at - int(STREAM_SECONDS * 1_000_000),
            row.state == RUNNING and row.expires_at > now, row.error, row.ended_at, json.loads(row.result or "{}"),
            json.loads(row.context or "{}"),
        )
        for row in connection.execute(statement)
    }  # fmt: skip
