"""What reconciliations came to, without reading their whole results: for lists that stay quick when there are many."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import JSON, Column, ColumnElement, Row, cast, func, select

from twinstream.ledger.database import Database
from twinstream.ledger.runs import RUNNING
from twinstream.ledger.schema import generations, runs
from twinstream.transaction import canonical_json

KIND = "reconcile"
WHOLE = canonical_json({})
"""The scope of a reconciliation that looked at the whole result."""


@dataclass(frozen=True)
class Judged:
    """One reconciliation in a line."""

    id: int
    generation: int
    frontier: int
    state: str
    verdict: str | None
    """None as long as it runs, and where it failed."""
    counts: Mapping[str, int]
    whole: bool
    """Whether it looked at the whole result and not at a part."""
    started_at: int
    ended_at: int | None
    error: str | None

    @property
    def differing(self) -> int:
        """Rows that differ and should not; late rows are no defect."""
        return sum(many for kind, many in self.counts.items() if kind != "late")


def history(database: Database, pipeline: str, limit: int, before: int | None = None) -> list[Judged]:
    """The newest reconciliations of a pipeline in all its generations, newest first."""
    mine = select(generations.c.id).where(generations.c.pipeline == pipeline)
    newest = select(runs.c.id).where(runs.c.generation.in_(mine), runs.c.kind == KIND)
    if before is not None:
        newest = newest.where(runs.c.id < before)
    chosen = newest.order_by(runs.c.id.desc()).limit(limit).subquery()
    statement = select(*columns(database.dialect)).join(chosen, chosen.c.id == runs.c.id).order_by(runs.c.id.desc())
    with database.read() as connection:
        return [judged(row) for row in connection.execute(statement)]


def columns(dialect: str) -> tuple[ColumnElement[Any], ...]:
    """What a line needs; the database takes it out of the result, which may be long."""
    return (
        runs.c.id,
        runs.c.generation,
        runs.c.frontier,
        runs.c.state,
        runs.c.scope,
        runs.c.started_at,
        runs.c.ended_at,
        runs.c.error,
        _inside(dialect, runs.c.result, "verdict").label("verdict"),
        _inside(dialect, runs.c.result, "comparison", "counts").label("counts"),
    )


def judged(row: Row[Any]) -> Judged:
    """A line out of `columns`."""
    found = row.verdict if row.state != RUNNING else None
    return Judged(
        row.id, row.generation, row.frontier, row.state, found, json.loads(row.counts) if row.counts else {},
        row.scope == WHOLE, row.started_at, row.ended_at, row.error,
    )  # fmt: skip


def _inside(dialect: str, column: Column[Any], *path: str) -> ColumnElement[Any]:
    if dialect == "sqlite":
        return func.json_extract(column, f"$.{'.'.join(path)}")
    return func.json_extract_path_text(cast(column, JSON), *path)
