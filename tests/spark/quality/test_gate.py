"""The users' suite as commit gate: what fails critically is held, the rest goes through."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.e2e.home import ROOT, Home
from tests.servers.spark_connect import spark_connect_server
from tests.spark.quality.made import write_suite
from twinstream.errors import TwinstreamError
from twinstream.quality import gate
from twinstream.transaction import State

VIEWS = "gxe.ExpectColumnValuesToBeBetween(column='views', max_value={most}, severity='{severity}', description='Few')"


@pytest.fixture
def home(spark, tmp_path):
    """Page views behind a gate, four small txids."""
    found = Home.make(tmp_path / "home", spark)
    found.change("page_views", "from twinstream import", "from twinstream.quality import gate\nfrom twinstream import")
    place = repr(str(tmp_path / "expectations"))
    found.change("page_views", "batch_records=100_000,", f"batch_records=50, gate=gate('page_views', {place}),")
    found.generate("page_views", 200)
    return found


def states(home: Home) -> list[State]:
    engine = home.engine()
    generation = engine.generation(engine.definition("page_views"))
    return [batch.state for batch in engine.ledger.batches.get(generation.id, 1, 99)]


def test_rows_that_meet_the_suite_are_committed(home, tmp_path):
    write_suite(
        tmp_path / "expectations", VIEWS.format(most=10_000, severity="critical"),
        VIEWS.format(most=0, severity="warning"),
    )  # fmt: skip
    home.drain("page_views")
    assert set(states(home)) == {State.COMMITTED}
    assert home.read("page_views")


def test_rows_that_fail_critically_are_held_with_the_reason(home, tmp_path):
    write_suite(tmp_path / "expectations", VIEWS.format(most=0, severity="critical"))
    with pytest.raises(TwinstreamError, match=r"Few: found .* rows, such as"):
        home.drain("page_views")
    assert states(home)[0] is State.HELD
    assert home.read("page_views") == []


def test_a_suite_that_cannot_be_asked_stops_the_drain_and_commits_nothing(home, tmp_path):
    write_suite(tmp_path / "expectations", "gxe.ExpectColumnValuesToNotBeNull(column='vews')")
    with pytest.raises(TwinstreamError, match="vews"):
        home.drain("page_views")
    assert not {State.COMMITTED, State.HELD} & set(states(home))


def test_only_critical_failures_are_reasons(spark, tmp_path):
    rows = spark.createDataFrame([("/a", 5), ("/b", 7)], "page string, views int")
    write_suite(tmp_path, *(VIEWS.format(most=5, severity=severity) for severity in ("info", "warning")))
    assert gate("page_views", str(tmp_path))(rows) is None
    write_suite(tmp_path, VIEWS.format(most=5, severity="critical"))
    assert gate("page_views", str(tmp_path))(rows) == "Few: found 1 of 2 rows, such as 7"


def test_a_gate_leaves_no_rows_behind_in_memory(spark, tmp_path):
    rows = spark.createDataFrame([("/a", 5)], "page string, views int")
    write_suite(tmp_path, VIEWS.format(most=5, severity="critical"))
    gate("page_views", str(tmp_path))(rows)
    assert not rows.is_cached


def test_a_gate_works_on_spark_connect(tmp_path):
    write_suite(tmp_path, VIEWS.format(most=5, severity="critical"))
    asked = (
        "import os, sys; from pyspark.sql import SparkSession; from twinstream.quality import gate;"
        "spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate();"
        "rows = spark.createDataFrame([('/a', 5), ('/b', 7)], 'page string, views int');"
        "print(gate('page_views', sys.argv[2])(rows))"
    )
    with spark_connect_server() as url:
        ran = subprocess.run(
            [sys.executable, "-c", asked, url, str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT / "include")},
        )
    assert ran.stdout == "Few: found 1 of 2 rows, such as 7\n", ran.stderr[-2000:]
