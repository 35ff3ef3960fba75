"""Backup and restore of the ledger as one JSON-lines file, the same for SQLite and PostgreSQL."""

from __future__ import annotations

import json
from pathlib import Path

from sqlalchemy import insert, select, text

from twinstream.errors import LedgerError, Refused
from twinstream.failpoints import durable
from twinstream.ledger.database import REVISIONS, Database
from twinstream.ledger.schema import hosts, metadata
from twinstream.sinks.sync import sync_file

_HEAD = {"twinstream": "ledger", "version": REVISIONS[-1]}
_AT_ONCE = 5_000


def backup(database: Database, file: Path) -> int:
    """Writes every row of one consistent view; the file appears whole or not at all."""
    if file.exists():
        raise Refused(f"{file} exists already.", next_step="Name another file, or remove it first.")
    temporary = file.with_name(f".{file.name}.tmp")
    rows = 0
    with database.read() as connection, temporary.open("w", encoding="utf-8") as target:
        target.write(json.dumps(_HEAD) + "\n")
        for table in metadata.sorted_tables:
            if table is hosts:
                continue
            for row in connection.execute(select(table)):
                target.write(json.dumps([table.name, dict(row._mapping)], ensure_ascii=False) + "\n")
                rows += 1
    with durable("ledger.backup"):
        sync_file(temporary)
        temporary.replace(file)
    return rows


def restore(database: Database, file: Path) -> int:
    """Fills an empty ledger from a backup; refuses to touch one that has anything in it."""
    try:
        source = file.open(encoding="utf-8")
    except OSError as error:
        raise LedgerError(f"The backup {file} cannot be read: {error.strerror}.") from error
    with source:
        head = _parse(source.readline(), file)
        if not isinstance(head, dict) or head.get("twinstream") != "ledger":
            raise LedgerError(f"{file} is not a ledger backup.")
        if head.get("version") != REVISIONS[-1]:
            raise LedgerError(f"The backup has version {head.get('version')}, this Twinstream needs {REVISIONS[-1]}.")
        tables = {table.name: table for table in metadata.sorted_tables}
        rows = 0
        with database.write("restore") as connection:
            for table in metadata.sorted_tables:
                if table is not hosts and connection.execute(select(table).limit(1)).first() is not None:
                    raise Refused(
                        "The ledger is not empty.", next_step="Restore into a new one: set TWINSTREAM_LEDGER_URL."
                    )
            pending: dict[str, list[dict[str, object]]] = {}
            for line in source:
                name, row = _parse(line, file)
                pending.setdefault(name, []).append(row)
                rows += 1
                if len(pending[name]) >= _AT_ONCE:
                    connection.execute(insert(tables[name]), pending.pop(name))
            for table in metadata.sorted_tables:
                if pending.get(table.name):
                    connection.execute(insert(table), pending[table.name])
            if database.dialect == "postgresql":
                for table in ("generations", "attempts", "pins", "journal"):
                    connection.execute(
                        text(
                            f"select setval(pg_get_serial_sequence('{table}', 'id'), "
                            f"(select coalesce(max(id), 1) from {table}))"
                        )
                    )
    return rows


def _parse(line: str, file: Path) -> list[object] | dict[str, object]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise LedgerError(f"The backup {file} is damaged.", next_step="Use another backup.") from error
    assert isinstance(found, list | dict)
    return found
