"""The records of many txids read from the source once more and prepared, each marked late or not as the ledger says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from twinstream.operators.base import EVENT_TIME, col
from twinstream.pipeline import Definition
from twinstream.runtime.classify import classified
from twinstream.sources.base import Places, Slice
from twinstream.transaction import Batch

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LATE = "_late"


def late_limits(definition: Definition, batches: Sequence[Batch], before: int | None) -> dict[int, int | None]:
    """What decides about late rows in each txid: the watermark that the ledger logged for the txid before it."""
    limits: dict[int, int | None] = {}
    for batch in batches:
        limits[batch.txid] = None if batch.exempt or definition.late == "keep" else before
        before = batch.watermark
    return limits


def prepared_rows(
    spark: SparkSession, definition: Definition, places: Places, batches: Sequence[Batch], limits: dict[int, int | None]
) -> DataFrame:
    """All kept rows of the txids, late ones marked; dead letters and discarded txids are left out."""
    from pyspark.sql import functions as F

    slices = [
        Slice(batch.txid, batch.range, batch.batch_time, False, limits[batch.txid])
        for batch in batches
        if batch.discard_reason is None
    ]
    rows = classified(definition.pipeline.source.read(spark, places, slices), definition.pipeline)
    rows = definition.prepared.apply(rows.where(F.col("_reason").isNull())).where(F.col("_kept"))
    return rows.withColumn(LATE, F.coalesce(_is_late(definition), F.lit(False)))


def _is_late(definition: Definition) -> Column:
    """Closed by the watermark of the txid before: Spark's own window decides, not the stream's arithmetic."""
    from pyspark.sql import functions as F

    limit = F.timestamp_micros("_late_before")
    window = definition.pipeline.operator.window
    if window is None:
        return col(EVENT_TIME) < limit
    return F.window(col(EVENT_TIME), window.duration)["end"] <= limit
