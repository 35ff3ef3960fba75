"""What the one-shot service of docker-compose.yaml leaves behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.servers.postgres import postgres_server

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server of its own: users belong to a server, not to one of its databases."""
    with postgres_server() as url:
        yield url


def prepare(server: str, folder: Path, **changes: str) -> dict[str, str]:
    address = urlsplit(server)
    settings = {
        "POSTGRES_USER": str(address.username),
        "POSTGRES_PASSWORD": str(address.password),
        "POSTGRES_ADDRESS": f"{address.hostname}:{address.port}",
        "AIRFLOW_DATABASE_PASSWORD": "for-airflow",
        "LEDGER_PASSWORD": "for-the-ledger=",
        "AIRFLOW_ADMIN_PASSWORD": "for-people",
        "SPARK_SECRET": "for-spark=",
        "SPARK_JOB_CORES": "3",
        "SPARK_EXECUTOR_MEMORY": "2g",
        "SPARK_CONF_DIR": str(folder / "conf"),
        "TWINSTREAM_JARS": os.environ["TWINSTREAM_JARS"],
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(folder / "passwords.json"),
        **changes,
    }
    command = [sys.executable, "-m", "bin.lib.first_start"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | settings, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert not any(value in done.stdout + done.stderr for name, value in settings.items() if "PASSWORD" in name)
    return settings


def enter(server: str, user: str, password: str, database: str) -> str:
    address = urlsplit(server)
    with psycopg.connect(
        host=address.hostname, port=address.port, user=user, password=password, dbname=database
    ) as connection:
        connection.execute("create table if not exists mine (x int)")
        found = connection.execute("select current_user").fetchone()
    assert found is not None
    return str(found[0])


def test_each_user_has_a_database_and_no_way_into_the_other(server: str, tmp_path: Path) -> None:
    prepare(server, tmp_path)
    assert enter(server, "airflow", "for-airflow", "airflow") == "airflow"
    assert enter(server, "twinstream", "for-the-ledger=", "twinstream") == "twinstream"
    with pytest.raises(psycopg.OperationalError, match="permission denied"):
        enter(server, "airflow", "for-airflow", "twinstream")
    with pytest.raises(psycopg.OperationalError, match="permission denied"):
        enter(server, "twinstream", "for-the-ledger=", "airflow")


def test_a_second_run_keeps_the_data_and_takes_over_a_new_password(server: str, tmp_path: Path) -> None:
    prepare(server, tmp_path)
    enter(server, "twinstream", "for-the-ledger=", "twinstream")
    prepare(server, tmp_path, LEDGER_PASSWORD="changed", AIRFLOW_ADMIN_PASSWORD="also changed")
    enter(server, "twinstream", "changed", "twinstream")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        enter(server, "twinstream", "for-the-ledger=", "twinstream")
    assert json.loads((tmp_path / "passwords.json").read_text()) == {"admin": "also changed"}


def test_files_with_secrets_are_for_their_owner_alone(server: str, tmp_path: Path) -> None:
    prepare(server, tmp_path)
    defaults = tmp_path / "conf" / "spark-defaults.conf"
    assert {file.stat().st_mode & 0o777 for file in (defaults, tmp_path / "passwords.json")} == {0o600}
    settings = dict(line.split(maxsplit=1) for line in defaults.read_text().splitlines())
    assert settings["spark.authenticate.secret"] == "for-spark="
    assert settings["spark.cores.max"] == "3"
    assert "delta-spark" in settings["spark.jars"]
