"""Backup and restore of the ledger as one JSON-lines file, the same for SQLite and PostgreSQL.

The first line says what it is, the last one how many rows there must be: a file that was cut is noticed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert, select, text
from sqlalchemy.exc import IntegrityError

from twinstream.errors import LedgerError, Refused
from twinstream.failpoints import durable
from twinstream.ledger.database import REVISIONS, Database
from twinstream.ledger.schema import hosts, metadata
from twinstream.sinks.sync import sync_file, sync_folder

_HEAD = {"twinstream": "ledger", "version": REVISIONS[-1]}
_AT_ONCE = 5_000
_TABLES = {table.name: table for table in metadata.sorted_tables if table is not hosts}
"""In an order in which no row comes before one that it refers to."""


def backup(database: Database, file: Path) -> int:
    """Writes every row of one consistent view; the file appears whole or not at all."""
    if file.exists():
        raise Refused(f"{file} exists already.", next_step="Name another file, or remove it first.")
    temporary = file.with_name(f".{file.name}.tmp")
    try:
        rows = _write(database, temporary)
        with durable("ledger.backup"):
            sync_file(temporary)
            temporary.replace(file)
            sync_folder(file.parent)
    except OSError as error:
        raise LedgerError(
            f"The backup {file} cannot be written: {error.strerror}.",
            next_step="Name a file in a folder that is there, can be written and has room.",
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return rows


def restore(database: Database, file: Path) -> int:
    """Fills an empty ledger from a backup; refuses to touch one that has anything in it."""
    try:
        return _fill(database, file)
    except IntegrityError as error:
        raise _damaged(file) from error


def _fill(database: Database, file: Path) -> int:
    rows = 0
    with database.write("restore") as connection:
        for table in _TABLES.values():
            if connection.execute(select(table).limit(1)).first() is not None:
                raise Refused(
                    "The ledger is not empty.", next_step="Restore into a new one: set TWINSTREAM_LEDGER_URL."
                )
        for name, lines in groupby(_rows(file), key=lambda line: line[0]):
            for some in _batched(lines):
                connection.execute(insert(_TABLES[name]), [row for _, row in some])
                rows += len(some)
        if database.dialect == "postgresql":
            _number_on(connection)
    return rows


def _write(database: Database, target: Path) -> int:
    rows = 0
    with database.read() as connection, target.open("w", encoding="utf-8") as lines:
        lines.write(json.dumps(_HEAD) + "\n")
        for name, table in _TABLES.items():
            everything = select(table).order_by(*table.primary_key).execution_options(yield_per=_AT_ONCE)
            for row in connection.execute(everything):
                lines.write(json.dumps([name, dict(row._mapping)], ensure_ascii=False) + "\n")
                rows += 1
        lines.write(json.dumps({"rows": rows}) + "\n")
    return rows


def _rows(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Table and row, line by line, after the head; raises unless the last line confirms their number."""
    rows = 0
    try:
        with file.open(encoding="utf-8") as lines:
            _check_head(json.loads(lines.readline()), file)
            for line in lines:
                match json.loads(line):
                    case [str(name), dict(row)] if name in _TABLES and row.keys() == set(_TABLES[name].c.keys()):
                        rows += 1
                        yield name, row
                    case {"rows": number} if number == rows and not lines.readline():
                        return
                    case _:
                        break
    except OSError as error:
        raise LedgerError(f"The backup {file} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise _damaged(file) from error
    raise _damaged(file)


def _check_head(head: object, file: Path) -> None:
    if not isinstance(head, dict) or head.get("twinstream") != "ledger":
        raise LedgerError(
            f"{file} is not a ledger backup.", next_step="Name a file that `twinstream ledger backup` wrote."
        )
    if head.get("version") != REVISIONS[-1]:
        raise LedgerError(
            f"The backup has version {head.get('version')}, this Twinstream needs {REVISIONS[-1]}.",
            next_step="Restore it with the Twinstream that wrote it, then run `twinstream ledger upgrade` with this.",
        )


def _batched(lines: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    remaining = iter(lines)
    while some := list(islice(remaining, _AT_ONCE)):
        yield some


def _number_on(connection: Connection) -> None:
    """New rows are numbered after the restored ones."""
    for name in ("generations", "attempts", "pins", "journal"):
        newest = f"(select max(id) from {name})"
        connection.execute(
            text(f"select setval(pg_get_serial_sequence('{name}', 'id'), coalesce({newest}, 1), {newest} is not null)")
        )


def _damaged(file: Path) -> LedgerError:
    return LedgerError(f"The backup {file} is damaged or was cut.", next_step="Use another backup.")
