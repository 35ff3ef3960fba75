"""Rehearsing: a runner that stands by does once, for nothing, what it would have to do first after a take-over.

Whatever Spark and Java do for the first time is slow. The newest committed txid is processed once more into a folder of
its own, and a query is started behind the last planned range; nothing of it is kept, and no ledger or table is touched.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from twinstream.pipeline import Definition
from twinstream.runtime.process import SparkProcessor
from twinstream.sources.base import History, Places
from twinstream.sources.kafka.source import KafkaSource
from twinstream.transaction import Batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY_SECONDS = 30
"""How long a query may take to come up; one that takes longer is no use as a rehearsal."""


def rehearse(
    spark: SparkSession, definition: Definition, places: Places, newest: Batch, history: History, folder: Path
) -> None:
    """Processes the txid and runs a query, both within the folder, which is the caller's to delete."""
    source = definition.pipeline.source
    assert isinstance(source, KafkaSource)
    SparkProcessor(spark, definition, definition.columns(spark), places, folder).process([newest], "staging", None)
    rows = source.stream(spark, places, history, definition.pipeline.batch_records)
    writer = rows.writeStream.foreachBatch(lambda _rows, _number: None).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    try:
        query.awaitTermination(QUERY_SECONDS)
    finally:
        query.stop()
