from __future__ import annotations

import sys
from pathlib import Path

import pytest

from twinstream.catalog import load_catalog

DEFINITION = """
from helper_of_shipping import twice
from twinstream import Append, DeltaSink, FileSource, Pipeline


def shout(text):
    return twice((text or "").upper())


def prepare(rows):
    from pyspark.sql import functions as F

    return rows.select("event_id", F.udf(shout, "string")("page").alias("loud"), "at")


pipeline = Pipeline(
    name="shouting",
    source=FileSource("data", format="json", schema="event_id string, page string, at timestamp"),
    record_id="event_id",
    event_time="at",
    prepare=prepare,
    operator=Append(),
    sink=DeltaSink("tables/shouting"),
)
"""


def test_functions_of_a_definition_and_of_the_helpers_beside_it_reach_the_executors(
    events, spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "shouting.py").write_text(DEFINITION)
    (tmp_path / "helper_of_shipping.py").write_text("def twice(text):\n    return text + text\n")
    definition = load_catalog(tmp_path).get("shouting")
    setting = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "false")
    try:
        rows = definition.prepared.apply(events.select("_record_id", "_reason", "event_id", "page", "at"))
        assert {row["event_id"]: row["loud"] for row in rows.where("_kept").collect()} == {
            "e1": "HOMEHOME",
            "e2": "CARTCART",
            "e3": "",
            "e4": "CARTCART",
        }
    finally:
        spark.conf.set(setting, before)
