"""The engine's settings inside Airflow: the environment's, with the ledger and brokers that connections name."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

import twinstream
from twinstream.catalog import load_catalog
from twinstream.errors import SettingsError
from twinstream.settings import Settings
from twinstream.sources.kafka.connection import variable_of

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


def of_task(pipeline: str | None = None) -> Settings:
    """The settings in a task, with the connections that a pipeline needs."""
    found: dict[str, Connection] = {}
    for name in (LEDGER, *_needed(pipeline)):
        with suppress(AirflowNotFoundException):
            found[name] = BaseHook.get_connection(name)
    return _with(found)


async def of_trigger(pipeline: str | None = None) -> Settings:
    """The settings in the triggerer, with the connections that a pipeline needs."""
    found: dict[str, Connection] = {}
    for name in (LEDGER, *await asyncio.to_thread(_needed, pipeline)):
        with suppress(AirflowNotFoundException):
            found[name] = await BaseHook.aget_connection(name)
    return _with(found)


def _needed(pipeline: str | None) -> tuple[str, ...]:
    """Names of connections besides the ledger's; what Airflow does not have, the environment may."""
    if pipeline is None:
        return ()
    return load_catalog(without_ledger().pipelines).get(pipeline).pipeline.connections


def _with(connections: Mapping[str, Connection]) -> Settings:
    known = dict(connections)
    ledger = known.pop(LEDGER, None)
    more = {"TWINSTREAM_LEDGER_URL": ledger_url(ledger)} if ledger else {}
    reached = {variable_of(name): kafka_options(connection) for name, connection in known.items()}
    return Settings.from_env({**os.environ, **folders(), **more, **reached})


def kafka_options(connection: Connection) -> str:
    """How an Airflow connection reaches its brokers: its extra, and host, login and password where that has none."""
    found = {name: value for name, value in connection.extra_dejson.items() if not name.startswith("__")}
    if connection.host:
        found.setdefault("bootstrap.servers", f"{connection.host}:{connection.port or 9092}")
    if connection.login:
        found.setdefault("sasl.username", connection.login)
        found.setdefault("sasl.password", connection.password or "")
    return json.dumps(found)


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
