"""From what a source read to records with their hidden columns: hash, record id, event time, and why not, if not."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from twinstream.pipeline import Pipeline


class Classifier:
    """Adds `_hash`, `_record_id`, `_event_time`, `_batch_time`, `_reason` and `_kept` to what a source read.

    A record with a `_reason` is a dead letter; it goes on through prepare only to be counted. Columns are made
    once: for a small group that takes longer than to process it.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def __call__(self, rows: DataFrame) -> DataFrame:
        facts, reason, rest = self._columns
        return rows.withColumns(facts).withColumns(reason).withColumns(rest).drop("_misfit", "_batch_micros")

    @cached_property
    def _columns(self) -> tuple[dict[str, Column], dict[str, Column], dict[str, Column]]:
        from pyspark.sql import functions as F

        pipeline = self._pipeline
        columns = pipeline.source.columns
        facts = {
            "_hash": record_hash(columns),
            "_record_id": F.col(f"`{pipeline.record_id}`").cast("string"),
            "_event_time": F.when(F.col("_raw").isNull(), F.expr(_event_time(pipeline))),
            "_batch_time": F.timestamp_micros("_batch_micros"),
        }
        rest = {
            "_kept": F.col("_reason").isNull() & ~F.col("_discarded"),
            "_first": F.lit(True),
            "_raw": F.when(F.col("_reason").isNotNull(), F.coalesce("_raw", as_text(columns))),
        }
        return facts, {"_reason": _reason(pipeline)}, rest


def classified(rows: DataFrame, pipeline: Pipeline) -> DataFrame:
    """The rows as `Classifier` makes them."""
    return Classifier(pipeline)(rows)


def record_hash(columns: Mapping[str, str]) -> Column:
    """64 bits over all of a record's values, each followed by its position, because xxhash64 skips nulls."""
    from pyspark.sql import functions as F

    parts: list[Column] = []
    for position, (name, kind) in enumerate(columns.items()):
        value = F.col(f"`{name}`")
        parts += [F.to_json(F.struct(f"`{name}`")) if "map<" in kind else value, F.lit(position)]
    return F.xxhash64(*parts, F.col("_raw"))


def as_text(columns: Mapping[str, str]) -> Column:
    """A record that parsed, as a line of JSON."""
    from pyspark.sql import functions as F

    return F.to_json(F.struct(*(F.col(f"`{name}`") for name in columns)))


def empty_input(spark: SparkSession, pipeline: Pipeline) -> DataFrame:
    """No records, with all the columns that prepare gets: enough for Spark to say what comes out."""
    from twinstream.sources.base import FACTS

    facts = FACTS.replace(":", " ")
    columns = ", ".join(f"`{name}` {kind}" for name, kind in pipeline.source.columns.items())
    schema = f"{columns}, {facts}, _file string, _raw string, _misfit string"
    return classified(spark.createDataFrame([], schema), pipeline)


def _event_time(pipeline: Pipeline) -> str:
    return f"`{pipeline.event_time}`" if pipeline.event_time in pipeline.source.columns else pipeline.event_time


def _reason(pipeline: Pipeline) -> Column:
    from pyspark.sql import functions as F

    record_id, event_time = pipeline.record_id, pipeline.event_time
    reason = (
        F.when(F.col("_misfit").isNotNull(), F.concat(F.lit("value does not fit column "), F.col("_misfit")))
        .when(F.col("_raw").isNotNull(), F.lit("does not parse"))
        .when(F.col("_record_id").isNull(), F.lit(f"no record id ({record_id})"))
        .when(F.col("_event_time").isNull(), F.lit(f"no event time ({event_time})"))
    )
    limit = pipeline.watermark.max_future_micros if pipeline.watermark else None
    if limit is not None:
        ahead = F.unix_micros("_event_time") > F.col("_batch_micros") + F.lit(limit)
        reason = reason.when(ahead, F.lit("too far in the future"))
    return reason
