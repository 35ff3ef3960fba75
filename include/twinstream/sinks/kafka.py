"""The Kafka sink: rows are committed to the generation's own Delta table first, then produced to a topic.

These are MillWheel's strong productions: what goes out is what was committed, so that a second try sends the same rows
with the same headers, and whoever reads the topic can tell a repetition from a record.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinstream.columns import nearest
from twinstream.durations import parse_duration
from twinstream.errors import DefinitionError
from twinstream.operators.base import col
from twinstream.sources.kafka.connection import check_connection

if TYPE_CHECKING:
    from pyspark.sql import Column

    from twinstream.pipeline import Pipeline

HEADERS = ("pipeline", "generation", "txid", "sequence", "id")
"""Each as `twinstream-…`; the id is generation, txid and sequence in one, for readers that take one header."""
VALUE = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
"""How a row is written as JSON: every column, and moments to the microsecond."""


@dataclass(frozen=True)
class KafkaSink:
    """Where rows go: a topic, each row as JSON. The table behind it is `tables/NAME` of the pipeline."""

    topic: str
    connection: str = "kafka_default"
    key: str | None = None
    """The column whose text is the record's key; None: the record id."""
    retain: str = "7 days"
    """How long the table's older states stay readable; rows that were not produced yet stay in any case."""

    kind = "kafka"
    path = ""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", self.topic) or self.topic in (".", ".."):
            raise DefinitionError(
                f"KafkaSink(topic={self.topic!r}) cannot be a topic's name.",
                next_step="Use letters, digits, dots, underscores and hyphens.",
            )
        check_connection("KafkaSink", self.connection)
        parse_duration(self.retain, "KafkaSink(retain=…)")

    @property
    def retain_seconds(self) -> float:
        return parse_duration(self.retain, "KafkaSink(retain=…)") / 1_000_000

    @property
    def place(self) -> str:
        return self.topic

    @property
    def connections(self) -> tuple[str, ...]:
        return (self.connection,)

    def check(self, pipeline: Pipeline, columns: Mapping[str, str | None] | None) -> None:
        """Refuses what cannot be produced; columns are None as long as only Spark could tell them."""
        if not pipeline.operator.stateless:
            raise DefinitionError(
                f"pipeline {pipeline.name}: KafkaSink takes the rows of Append; an aggregate goes on to change after "
                "it was sent, and a topic takes nothing back.",
                next_step="Use DeltaSink, or let whoever reads the topic aggregate.",
            )
        self._check_no_loop(pipeline)
        key = self.key or pipeline.record_id
        if columns is None:
            return
        if key not in columns:
            raise DefinitionError(
                f"pipeline {pipeline.name}: the key of KafkaSink, {key!r}, is no column of the result.",
                next_step=nearest(key, list(columns)) or "Select it in prepare, or name another with KafkaSink(key=…).",
            )
        if re.match(r"array|map|struct|binary|variant", columns[key] or ""):
            raise DefinitionError(
                f"pipeline {pipeline.name}: the key of KafkaSink, {key!r}, is {columns[key]}, which is no plain text.",
                next_step="Name a column of a simple type with KafkaSink(key=…).",
            )

    def _check_no_loop(self, pipeline: Pipeline) -> None:
        from twinstream.sources.kafka.source import KafkaSource

        source = pipeline.source
        if isinstance(source, KafkaSource) and source.connection == self.connection and source.reads(self.topic):
            raise DefinitionError(
                f"pipeline {pipeline.name} would read what it writes: the topic {self.topic}.",
                next_step="Give KafkaSink a topic that the source does not read.",
            )

    def message(self, pipeline: Pipeline, columns: Mapping[str, str]) -> tuple[Column, Column]:
        """Key and value of a prepared row."""
        from pyspark.sql import functions as F

        key = col(self.key or pipeline.record_id).cast("string").alias("key")
        value = F.to_json(F.struct(*map(col, columns)), VALUE).alias("value")
        return key, value
