"""Where Spark is: what an Airflow connection says, checked before anything is started."""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowNotFoundException

if TYPE_CHECKING:
    from airflow.sdk import Connection

ANSWER_SECONDS = 5.0


@dataclass(frozen=True)
class Master:
    """A master: every piece of work starts a Spark of its own there by spark-submit."""

    connection: str
    url: str

    @property
    def is_local(self) -> bool:
        return self.url.startswith("local")


@dataclass(frozen=True)
class ConnectServer:
    """A Spark Connect server that is up already."""

    connection: str
    address: str = field(repr=False)
    """Holds the token, so it is never shown."""
    ui: str | None = None

    def session(self, attempt: Mapping[str, str]) -> str:
        """The address of the session of one try of a task: whoever knows the try can end what it left behind."""
        named = json.dumps(dict(attempt), sort_keys=True)
        return f"{self.address.rstrip(';')};session_id={uuid.uuid5(uuid.NAMESPACE_URL, named)}"


def resolve(name: str) -> Master | ConnectServer:
    """What the connection stands for; one clear error where it is not there or cannot be used."""
    try:
        connection = BaseHook.get_connection(name)
    except AirflowNotFoundException:
        raise AirflowFailException(
            f"There is no Airflow connection {name!r} for Spark. Nothing was submitted. Add it under Admin, "
            "Connections (type Spark with the master as its host, or type Spark Connect), or name another one in the "
            "definition: Orchestration(spark=…)."
        ) from None
    return _connect(connection) if connection.conn_type == "spark_connect" else _master(connection)


def _connect(connection: Connection) -> ConnectServer:
    _require_host(connection)
    address = SparkConnectHook(connection.conn_id).get_connection_url()
    found = urlsplit(address)
    _require_answer(connection.conn_id, found.hostname or "", found.port or 15002)
    ui = connection.extra_dejson.get("spark_ui")
    return ConnectServer(connection.conn_id, address, str(ui) if ui else None)


def _master(connection: Connection) -> Master:
    """As the Spark provider reads such a connection."""
    host = connection.host or ""
    if connection.conn_type == "spark" and host and ("://" in host or not connection.port):
        url = host
    else:
        _require_host(connection)
        url = f"{connection.conn_type}://{host}"
    url = f"{url}:{connection.port}" if connection.port else url
    if connection.extra_dejson.get("deploy-mode") == "cluster":
        raise AirflowFailException(
            f"The Airflow connection {connection.conn_id!r} asks for deploy mode cluster. Nothing was submitted. The "
            "driver commits to the ledger and needs its password, so it runs with the task: use deploy mode client."
        )
    if url.startswith("spark://"):
        masters = [urlsplit(f"spark://{one}") for one in url.removeprefix("spark://").split(",")]
        if len(masters) == 1:
            _require_answer(connection.conn_id, masters[0].hostname or "", masters[0].port or 7077)
    return Master(connection.conn_id, url)


def _require_host(connection: Connection) -> None:
    if not connection.host:
        raise AirflowFailException(
            f"The Airflow connection {connection.conn_id!r} has no host. Nothing was submitted. Set it to the master "
            "(local[*], spark://…, yarn, k8s://…) or to the host of the Spark Connect server."
        )


def _require_answer(name: str, host: str, port: int) -> None:
    """Spark itself would try for minutes, and then tell it in a page of Java."""
    try:
        socket.create_connection((host, port), ANSWER_SECONDS).close()
    except OSError as error:
        raise AirflowException(
            f"Spark does not answer at {host}:{port} (Airflow connection {name!r}: {error.strerror or error}). Nothing "
            "was submitted. Start it, or correct the connection; the next try goes on from where the last one stopped."
        ) from None
