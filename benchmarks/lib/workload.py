"""What every way computes: counts and sums of page views a minute, by a definition and as people write it for Spark."""

from __future__ import annotations

from pathlib import Path

SCHEMA = "event_id string, page string, amount decimal(12,2), at timestamp"
FILES = f'FileSource("data", format="json", schema="{SCHEMA}")'
DEFINITION = """
from twinstream import (
    Aggregate, Deduplicate, DeltaSink, FileSource, KafkaSource, Pipeline, Watermark, count, fixed, sum_
)

pipeline = Pipeline(
    name="{name}",
    source={source},
    record_id="event_id",
    event_time="at",
    prepare="select event_id, page, amount, at from events where page is not null",
    operator=Aggregate(by=["page"], window=fixed("1 minute"), measures={{"views": count(), "spend": sum_("amount")}}),
    watermark=Watermark(delay="10 minutes", late="drop", max_future="1 hour"),
    deduplicate={deduplicate},
    sink=DeltaSink("tables/{name}"),
    batch_records={records},
)
"""

FORWARD = """
from twinstream import Append, KafkaSink, KafkaSource, Pipeline

pipeline = Pipeline(
    name="{name}",
    source=KafkaSource(topics="{source}", schema="{schema}", fields={{"came": "timestamp"}}),
    record_id="event_id",
    event_time="at",
    prepare="select event_id, page, amount, at, unix_millis(came) as came from events where page is not null",
    operator=Append(),
    sink=KafkaSink("{sink}"),
    delivery="at-least-once",
)
"""


def topic(name: str) -> str:
    """The source of a definition that reads a topic."""
    return f'KafkaSource(topics="{name}", schema="{SCHEMA}")'


def write_definition(home: Path, name: str, source: str, records: int, deduplicate: str = "None") -> None:
    """Puts a pipeline into the definitions of a home."""
    folder = home / "pipelines"
    folder.mkdir(parents=True, exist_ok=True)
    text = DEFINITION.format(name=name, source=source, records=records, deduplicate=deduplicate)
    (folder / f"{name}.py").write_text(text)


def write_forwarding(home: Path, name: str, source: str, sink: str) -> None:
    """Puts a pipeline from topic to topic into the definitions of a home."""
    text = FORWARD.format(name=name, source=source, sink=sink, schema=SCHEMA)
    (home / "pipelines" / f"{name}.py").write_text(text)


def aggregated(rows):
    """The same by a plain query."""
    from pyspark.sql import functions as F

    return (
        rows.where("page is not null")
        .groupBy("page", F.window("at", "1 minute"))
        .agg(F.count(F.lit(1)).alias("views"), F.sum("amount").alias("spend"))
    )


class Merged:
    """What people usually write for foreachBatch: each micro-batch is aggregated and merged into the table."""

    def __init__(self, spark, folder: Path) -> None:
        self._spark, self._folder = spark, str(folder)
        columns = "page string, window struct<start:timestamp,end:timestamp>, views bigint, spend decimal(22,2)"
        spark.createDataFrame([], columns).write.format("delta").save(self._folder)

    def merge(self, rows) -> None:
        from delta.tables import DeltaTable

        (
            DeltaTable.forPath(self._spark, self._folder).alias("t")
            .merge(aggregated(rows).alias("p"), "t.page = p.page and t.window = p.window")
            .whenMatchedUpdate(set={"views": "t.views + p.views", "spend": "t.spend + p.spend"})
            .whenNotMatchedInsertAll()
            .execute()
        )  # fmt: skip
