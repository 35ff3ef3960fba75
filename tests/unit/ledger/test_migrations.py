"""Migrations: what they make is what schema.py says."""

from __future__ import annotations

import re
from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text

from twinstream.ledger import Ledger, database
from twinstream.ledger.database import open_unchecked, revision, sqlite_engine, upgrade
from twinstream.ledger.schema import metadata


def test_a_migrated_database_is_what_the_schema_says(ledger: Ledger) -> None:
    with ledger.database.read() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True, "target_metadata": metadata}
        )
        assert compare_metadata(context, metadata) == []


def test_indexes_and_keys_are_what_the_schema_says(ledger: Ledger, tmp_path: Path) -> None:
    """Alembic does not compare the conditions of partial indexes, nor primary keys."""
    if ledger.database.dialect != "sqlite":
        with ledger.database.read() as connection:
            found = inspect(connection)
            for table in metadata.sorted_tables:
                assert found.get_pk_constraint(table.name)["constrained_columns"] == [c.name for c in table.primary_key]
            conditions = connection.execute(text("select indexdef from pg_indexes where indexdef like '%WHERE%'")).all()
        assert len(conditions) == sum(bool(i.dialect_options["postgresql"]["where"] is not None) for i in _indexes())
        return
    engine = sqlite_engine(str(tmp_path / "by-schema.db"))
    metadata.create_all(engine)
    with engine.connect() as connection:
        wanted = _statements(connection)
    with ledger.database.read() as connection:
        assert _statements(connection) == wanted


def test_the_newest_migration_is_the_one_the_code_knows(ledger: Ledger) -> None:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(Path(database.__file__).parent / "migrations"))
    scripts = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    assert tuple(reversed(scripts)) == database.REVISIONS
    assert revision(ledger.database) == database.REVISIONS[-1]


def test_upgrading_again_changes_nothing(ledger_url: str) -> None:
    opened = open_unchecked(ledger_url)
    assert revision(opened) is None
    upgrade(opened)
    upgrade(opened)
    assert revision(opened) == database.REVISIONS[-1]
    opened.close()


def _indexes():
    return [index for table in metadata.sorted_tables for index in table.indexes]


def _statements(connection) -> dict[str, str]:
    rows = connection.execute(text("select name, sql from sqlite_master where sql is not null")).all()
    return {
        row.name: re.sub(r"\s+", " ", row.sql.replace('"', "")) for row in rows if not row.name.startswith("alembic")
    }
