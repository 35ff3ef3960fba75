"""Two planted secrets, the ledger's password and a token of Spark Connect, are looked for wherever they must not be."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg import sql
from sqlalchemy.engine import make_url

from tests.airflow.e2e.world import World
from tests.servers.postgres import libpq_url
from twinstream.ledger.backup import backup

pytestmark = pytest.mark.timeout(1500)


@contextmanager
def watched_command_lines() -> Iterator[set[bytes]]:
    """Every command line that any process of this machine has while the block lasts."""
    seen: set[bytes] = set()
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.02):
            for entry in Path("/proc").iterdir():
                if entry.name.isdigit():
                    try:
                        seen.add((entry / "cmdline").read_bytes())
                    except OSError:
                        continue

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()


def everything_in(url: str) -> bytes:
    """All rows of all tables as text: XCom, rendered fields, audit log and the rest."""
    found = []
    with psycopg.connect(libpq_url(url)) as connection:
        names = connection.execute("select tablename from pg_tables where schemaname = 'public'").fetchall()
        for (name,) in names:
            rows = connection.execute(sql.SQL("select t::text from {} t").format(sql.Identifier(name))).fetchall()
            found += [name, *(row[0] for row in rows)]
    return "\n".join(found).encode()


def test_no_secret_is_on_a_command_line_in_a_log_in_airflows_database_in_the_ledger_or_in_spark(world: World) -> None:
    secrets = [make_url(world.ledger_url).password or "", world.token]
    assert all(secrets)
    with watched_command_lines() as commands:
        for name, first in (("twice", 50), ("submitted", 50)):
            world.write(name, first, 1)
            assert world.run(f"{name}__microbatch")[1] == "success"
        assert world.run("twice__reconcile")[1] == "success"
    assert any(b"guard.py" in command for command in commands)
    assert any(b"SparkSubmit" in command for command in commands)
    places = {"command lines": b"\n".join(commands)}
    for folder in (world.folder / "airflow", world.home):
        places |= {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    target = world.folder / "ledger.jsonl"
    with world.ledger() as ledger:
        backup(ledger.database, target)
    places["ledger"] = target.read_bytes()
    for page in ("environment", "jobs", "connect"):
        places[f"Spark's {page}"] = httpx.get(f"{world.spark_ui}/{page}/", timeout=60).content
    (application,) = world.ask_spark("applications")
    places["Spark's settings"] = str(world.ask_spark(f"applications/{application['id']}/environment")).encode()
    assert len(places["Spark's settings"]) > 1000
    places["Airflow's database"] = everything_in(world.airflow_url)
    assert b"rendered_task_instance_fields" in places["Airflow's database"]
    assert any("task_id=drain" in name for name in places)
    for secret in secrets:
        assert [name for name, content in places.items() if secret.encode() in content] == []
