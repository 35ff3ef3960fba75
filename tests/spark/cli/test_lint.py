from __future__ import annotations

import sys

import pytest

from twinstream.cli import lint
from twinstream.engine import Engine
from twinstream.errors import DefinitionError
from twinstream.settings import Settings

TEXT = """
from twinstream import Aggregate, DeltaSink, FileSource, Pipeline, count, sum_

def prepare(rows):
    return rows.where("amount > 0").withColumn("twice", rows.amount * 2)

pipeline = Pipeline(
    name="sales",
    source=FileSource("data/sales", schema="id string, amount decimal(10,2), ts bigint"),
    record_id="id",
    event_time="timestamp_millis(ts)",
    prepare=prepare,
    operator=Aggregate(measures={"rows": count(), "sum": sum_("twice")}),
    sink=DeltaSink("tables/sales"),
)
"""


@pytest.fixture
def checked(spark, tmp_path, monkeypatch):
    """Lints a definition by the test run's own Spark."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def call(changes=None):
        text = TEXT
        for old, new in (changes or {}).items():
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "sales.py").write_text(text)
        settings = Settings.from_env({"TWINSTREAM_HOME": str(tmp_path), "TWINSTREAM_PIPELINES": str(tmp_path)})
        engine = Engine(settings, spark)
        return lint._checked(engine, engine.definition("sales"), by_spark=True)

    return call


def test_spark_finds_the_columns_of_a_function(checked):
    entry = checked()
    assert entry["checked_by"] == "spark"
    assert entry["columns"]["twice"] == "decimal(12,2)"
    assert entry["result"] == {"rows": "bigint", "sum": "decimal(38,2)"}


def test_spark_agrees_with_what_is_known_of_sql(checked):
    entry = checked({"prepare=prepare": 'prepare="select id, amount * 2 as twice, ts from events"'})
    assert entry["columns"]["twice"] == "decimal(12,2)"


@pytest.mark.parametrize(
    "changes",
    [
        {'sum_("twice")': 'sum_("thrice")'},
        {"rows.amount * 2": "rows.amout * 2"},
        {"timestamp_millis(ts)": "timestamp_millis(tz)"},
        {"rows.amount * 2": "rows.amount.cast('double')"},
    ],
)
def test_spark_finds_what_only_spark_can(checked, changes):
    with pytest.raises(DefinitionError):
        checked(changes)
