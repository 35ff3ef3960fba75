"""Reading planned offsets with Spark's batch reader, each record with the txid of its offset."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twinstream.small_table import looked_up, small_table
from twinstream.sources.base import FACTS, Places, Slice
from twinstream.sources.json_text import RAW, ddl, parsed
from twinstream.sources.kafka.connection import spark_options
from twinstream.sources.kafka.spans import Partition, Span, Spans, from_payload
from twinstream.sources.wide import misfit, narrow, widened

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from twinstream.sources.kafka.source import KafkaSource

PARTITION_RECORDS = 500_000
"""A partition with more than this is read by several tasks."""
RECORD = {
    "key": "binary", "value": "binary", "headers": "array<struct<key:string,value:binary>>", "topic": "string",
    "partition": "int", "offset": "bigint", "timestamp": "timestamp",
}  # fmt: skip
"""The columns of a record as it is, for prepare to take apart."""


def read_offsets(
    spark: SparkSession, source: KafkaSource, places: Places, slices: Sequence[Slice], positions: bool = False
) -> DataFrame:
    """The records of the slices with the slice's facts, `_file` (topic, partition, offset), `_raw`, `_misfit`."""
    spans = [(piece, from_payload(piece.range.payload)[1]) for piece in slices]
    whole = _whole([found for _, found in spans])
    reach = spark_options(source.connection, places.connections)
    rows = _read(spark, reach, whole) if whole else spark.createDataFrame([], ddl(RECORD))
    rows = _with_facts(spark, rows, spans).withColumn("_file", _place())
    if positions:
        rows = rows.withColumn("_position", _position())
    return _as_json(rows, source) if source.schema else _as_it_is(rows)


def _with_facts(spark: SparkSession, rows: DataFrame, spans: Sequence[tuple[Slice, Spans]]) -> DataFrame:
    """Each record with the facts of the slice that its offset is in.

    What differs from group to group is data here, not a part of the query: Spark would compile that anew each time.
    """
    from pyspark.sql import functions as F

    if len(spans) == 1:
        piece, found = spans[0]
        facts = {topic: piece.facts() for topic, _ in found}
        return rows.withColumn("_facts", looked_up(F.col("topic"), FACTS, facts)).select("*", "_facts.*").drop("_facts")
    bits = max((span.size for _, found in spans for span in found.values()), default=1).bit_length()
    table = small_table(
        spark,
        f"topic:string,partition:int,_bucket:bigint,_from:bigint,_to:bigint,{FACTS}",
        [row for piece, found in spans for row in _buckets(piece, found, bits)],
    )
    rows = rows.withColumn("_bucket", F.shiftright("offset", bits))
    rows = rows.join(F.broadcast(table), ["topic", "partition", "_bucket"])
    rows = rows.where((F.col("offset") >= F.col("_from")) & (F.col("offset") < F.col("_to")))
    return rows.drop("_bucket", "_from", "_to")


def stream_offsets(
    spark: SparkSession, source: KafkaSource, places: Places, starts: Mapping[Partition, int], most: int
) -> DataFrame:
    """A stream of the topics from these offsets on; nobody reads its rows, so what it would lose is of no account."""
    return _stream(spark, source, places, starts, {"maxOffsetsPerTrigger": str(most), "failOnDataLoss": "false"})


def stream_records(
    spark: SparkSession, source: KafkaSource, places: Places, starts: Mapping[Partition, int]
) -> DataFrame:
    """A stream of the records from these offsets on; the time of a batch is that of each record in its topic."""
    from pyspark.sql import functions as F

    rows = _stream(spark, source, places, starts, {"includeHeaders": "true", "failOnDataLoss": "true"}).select(*RECORD)
    facts = {name: F.lit(None).cast(kind) for name, kind in (one.split(":") for one in FACTS.split(","))}
    facts |= {"_batch_micros": F.unix_micros("timestamp"), "_discarded": F.lit(False), "_file": _place()}
    rows = rows.withColumns(facts)
    return _as_json(rows, source) if source.schema else _as_it_is(rows)


def _stream(
    spark: SparkSession,
    source: KafkaSource,
    places: Places,
    starts: Mapping[Partition, int],
    more: Mapping[str, str],
) -> DataFrame:
    named = source.topics if isinstance(source.topics, str) else ",".join(source.topics)
    options = {
        **spark_options(source.connection, places.connections),
        **({"subscribePattern": source.pattern} if source.pattern else {"subscribe": named}),
        "startingOffsets": _by_topic(starts),
        "kafka.isolation.level": "read_committed",
        **more,
    }
    return spark.readStream.format("kafka").options(**options).load()


def _as_json(rows: DataFrame, source: KafkaSource) -> DataFrame:
    from pyspark.sql import functions as F

    wide = widened(source.value_columns)
    hidden = [name for name in rows.columns if name.startswith("_")]
    fields = {f"_field_{name}": _field(what) for name, what in source.fields.items()}
    texts = rows.select(F.coalesce(F.col("value").cast("string"), F.lit("")).alias("value"), *hidden, *(
        column.alias(name) for name, column in fields.items()
    ))  # fmt: skip
    found = parsed(texts, wide)
    found = narrow(found, source.value_columns, wide, misfit(source.value_columns, wide))
    return found.withColumnsRenamed({f"_field_{name}": name for name in source.fields})


def _as_it_is(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    nothing = F.lit(None).cast("string")
    return rows.withColumns({RAW: nothing, "_misfit": nothing})


def _field(what: str) -> Column:
    """A part of the record beside its value."""
    from pyspark.sql import functions as F

    kind, _, header = what.partition(":")
    if kind == "header":
        found = F.filter("headers", lambda one: one["key"] == F.lit(header))
        return F.get(found, F.size(found) - 1)["value"].cast("string")
    return F.col("key").cast("string") if kind == "key" else F.col(kind)


def _place() -> Column:
    from pyspark.sql import functions as F

    return F.concat_ws("/", "topic", F.col("partition").cast("string"), F.col("offset").cast("string"))


def _position() -> Column:
    from pyspark.sql import functions as F

    part = F.col("partition").cast("bigint")
    return F.struct(F.col("topic").alias("place"), part.alias("part"), F.col("offset").alias("number"))


def _read(spark: SparkSession, reach: Mapping[str, str], whole: Mapping[Partition, Span]) -> DataFrame:
    tasks = sum(-(-span.size // PARTITION_RECORDS) for span in whole.values())
    options = {
        **reach,
        "assign": _by_topic({partition: partition[1] for partition in whole}, list),
        "startingOffsets": _by_topic({partition: span.start for partition, span in whole.items()}),
        "endingOffsets": _by_topic({partition: span.end for partition, span in whole.items()}),
        "kafka.isolation.level": "read_committed",
        "includeHeaders": "true",
        "failOnDataLoss": "true",
        "minPartitions": str(max(tasks, len(whole))),
    }
    return spark.read.format("kafka").options(**options).load().select(*RECORD)


def _whole(spans: Sequence[Mapping[Partition, Span]]) -> dict[Partition, Span]:
    """From the first to the last offset of each partition that has any."""
    found: dict[Partition, Span] = {}
    for some in spans:
        for partition, span in some.items():
            if span.size:
                known = found.get(partition, span)
                found[partition] = Span(min(known.start, span.start), max(known.end, span.end))
    return found


def _buckets(piece: Slice, spans: Spans, bits: int) -> Iterator[dict[str, Any]]:
    """A row for each stretch of 2^bits offsets that a span touches, two at most: joining on it leaves few to try."""
    for (topic, partition), span in spans.items():
        if span.size:
            for bucket in range(span.start >> bits, (span.end - 1 >> bits) + 1):
                place = {"topic": topic, "partition": partition, "_bucket": bucket}
                yield {**place, "_from": span.start, "_to": span.end, **piece.facts()}


def _by_topic(values: Mapping[Partition, int], shape: type = dict) -> str:
    found: dict[str, Any] = {}
    for (topic, partition), value in sorted(values.items()):
        if shape is list:
            found.setdefault(topic, []).append(value)
        else:
            found.setdefault(topic, {})[str(partition)] = value
    return json.dumps(found)
