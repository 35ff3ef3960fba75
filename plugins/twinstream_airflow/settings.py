"""The engine's settings inside Airflow: the environment's, with the ledger that an Airflow connection names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

import twinstream
from twinstream.errors import SettingsError
from twinstream.settings import Settings

if TYPE_CHECKING:
    from airflow.sdk import Connection

LEDGER = "twinstream_ledger"
"""The Airflow connection of the ledger; where there is none, TWINSTREAM_LEDGER_URL or a file in the home."""


def folders() -> dict[str, str]:
    """Where definitions, tables and jars are; whatever the working folder of an Airflow process happens to be."""
    checkout = Path(twinstream.__file__).parents[2]
    home = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser() / "twinstream"
    found = {
        "TWINSTREAM_HOME": str(home),
        "TWINSTREAM_PIPELINES": str(checkout / "include" / "pipelines"),
        "TWINSTREAM_JARS": str(checkout / ".jars"),
    }
    return {name: os.environ.get(name) or default for name, default in found.items()}


def without_ledger() -> Settings:
    """All that can be known without asking Airflow for a connection: enough for parsing DAGs."""
    return Settings.from_env({**os.environ, **folders()})


def of_task() -> Settings:
    """The settings in a task."""
    try:
        connection = BaseHook.get_connection(LEDGER)
    except AirflowNotFoundException:
        return without_ledger()
    return _with(connection)


async def of_trigger() -> Settings:
    """The settings in the triggerer."""
    try:
        connection = await BaseHook.aget_connection(LEDGER)
    except AirflowNotFoundException:
        return without_ledger()
    return _with(connection)


def _with(connection: Connection) -> Settings:
    return Settings.from_env({**os.environ, **folders(), "TWINSTREAM_LEDGER_URL": ledger_url(connection)})


def ledger_url(connection: Connection) -> str:
    """What SQLAlchemy calls the database that an Airflow connection names."""
    from sqlalchemy.engine import URL

    if connection.conn_type in ("postgres", "postgresql"):
        return URL.create(
            "postgresql+psycopg", connection.login, connection.password, connection.host, connection.port,
            connection.schema, _texts(connection.extra_dejson),
        ).render_as_string(hide_password=False)  # fmt: skip
    if connection.conn_type == "sqlite":
        path = connection.schema or connection.host
        if path:
            return f"sqlite:////{path.lstrip('/')}"
    raise SettingsError(
        f"The Airflow connection {LEDGER} is of type {connection.conn_type!r} and names no ledger.",
        next_step="Make it a Postgres connection, or an SQLite one with the path of the file as its schema.",
    )


def _texts(extra: Mapping[str, object]) -> dict[str, str]:
    """What the driver is to be told besides, such as sslmode; Airflow keeps notes of its own there too."""
    return {name: value for name, value in extra.items() if isinstance(value, str) and not name.startswith("__")}
