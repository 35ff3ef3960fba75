"""A throw-away Spark Connect server: real Spark that outlives the processes that the tests kill."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bin.lib.local.processes import Started, free_port, stop
from bin.lib.local.spark import Spark
from twinstream.spark import FORGETFUL

SETTINGS = {"spark.sql.shuffle.partitions": "2", "spark.log.level": "ERROR", **FORGETFUL}


@contextmanager
def spark_connect_server(more: Mapping[str, str] | None = None, token: str = "") -> Iterator[str]:
    """Starts a server of its own on a free loopback port and yields its `sc://` address.

    `more` are settings besides; with a token it answers only to those who know it.
    """
    with tempfile.TemporaryDirectory(prefix="twinstream-connect-") as scratch:
        spark = Spark(Path(scratch))
        port = free_port()
        server = spark.connect("local[2]", port, token, {**SETTINGS, **(more or {})})
        try:
            spark.wait_for_connect(server, port)
            yield f"sc://127.0.0.1:{port}"
        finally:
            stop(Started.of("connect", server))
