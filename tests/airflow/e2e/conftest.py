"""One Airflow, one warm Spark Connect server, one PostgreSQL and one broker for all scenes."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bin.lib.local.processes import free_port
from tests.airflow.e2e.world import World, booted
from tests.conftest import INTERPRETED, JARS
from tests.servers.kafka import kafka_broker
from tests.servers.postgres import postgres_database
from tests.servers.spark_connect import spark_connect_server

WARM = 'spark="warm", watch=False, retries=2, retry_delay="1 second"'
SCENES = {
    "plain": WARM,
    "twice": WARM,
    "backfilled": f'{WARM}, microbatch="0 0 * * *"',
    "replayed": WARM,
    "watched": 'spark="warm", retries=2',
    "submitted": 'spark="cold", watch=False, retries=0',
    "timed_out": 'spark="warm", watch=False, retries=0, timeout="40 seconds"',
    "cold_time": 'spark="cold", watch=False, retries=0, timeout="90 seconds"',
    "killed_task": WARM,
    "killed_scheduler": WARM,
    "unconnected": 'spark="nowhere", watch=False, notify={{"_notifiers.ToFile": {{"path": "{folder}/notices"}}}}',
    "unreachable": 'spark="dead", watch=False, retries=1, retry_delay="1 second"',
    "mended": WARM,
    "unanswered": f'{WARM}, approval_timeout="5 seconds"',
    "automatic": f"{WARM}, auto_repair=True",
    "controlled": WARM,
    "shown": WARM,
    "streamed": 'spark="cold", watch=False, visit="15 seconds", restart_delay="1 second"',
}


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory, spark: Any, postgres_url: str) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("airflow")
    ui = free_port()
    token = f"canary-token-{secrets.token_hex(8)}"
    more = {
        "spark.ui.enabled": "true",
        "spark.ui.port": str(ui),
        "spark.jars": ",".join(map(str, sorted(JARS.glob("*.jar")))),
        **INTERPRETED,
    }
    with (
        spark_connect_server(more, token) as connect,
        postgres_database(postgres_url) as ledger,
        postgres_database(postgres_url) as airflow,
        kafka_broker(folder / "kafka") as kafka,
        booted(
            folder, SCENES, spark, (ledger, airflow), connect, token, f"http://127.0.0.1:{ui}", kafka.address
        ) as made,
    ):
        yield made
