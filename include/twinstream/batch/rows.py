"""The records of many txids read from the source once more and prepared, each marked late or not as the ledger says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from twinstream.operators.base import EVENT_TIME, RECORD_ID, col
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
    """All kept rows of the txids, late ones marked; dead letters, duplicates and discarded txids are left out.

    Duplicates can be told only among all txids from the first one on.
    """
    from pyspark.sql import functions as F

    slices = [
        Slice(batch.txid, batch.range, batch.batch_time, False, limits[batch.txid])
        for batch in batches
        if batch.discard_reason is None
    ]
    deduplicate = definition.pipeline.deduplicate
    read = definition.pipeline.source.read(spark, places, slices, positions=deduplicate is not None)
    rows = classified(read, definition.pipeline).where(F.col("_reason").isNull())
    if deduplicate is not None:
        rows = _first_of_each(rows, definition, deduplicate.horizon_micros)
    rows = definition.prepared.apply(rows).where(F.col("_kept"))
    return rows.withColumn(LATE, F.coalesce(_is_late(definition), F.lit(False)))


def _first_of_each(rows: DataFrame, definition: Definition, horizon: int) -> DataFrame:
    """Leaves duplicates out: of all records of an id within the horizon, the earliest that is not late stays."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    rows = rows.withColumns(
        {
            "_place": F.struct("_txid", "_position"),
            "_at": F.unix_micros(EVENT_TIME),
            "_behind": F.coalesce(_is_late(definition), F.lit(False)),
        }
    )
    near = Window.partitionBy(RECORD_ID).orderBy("_at").rangeBetween(-horizon, horizon)
    rows = rows.withColumn("_earliest", F.min(F.when(~F.col("_behind"), F.col("_place"))).over(near))
    rows = rows.where(F.col("_earliest").isNull() | (F.col("_place") <= F.col("_earliest")))
    return rows.drop("_place", "_at", "_behind", "_earliest", "_position")


def _is_late(definition: Definition) -> Column:
    """Closed by the watermark of the txid before: Spark's own window decides, not the stream's arithmetic."""
    from pyspark.sql import functions as F

    limit = F.timestamp_micros("_late_before")
    window = definition.pipeline.operator.window
    if window is None:
        return col(EVENT_TIME) < limit
    return F.window(col(EVENT_TIME), window.duration)["end"] <= limit
