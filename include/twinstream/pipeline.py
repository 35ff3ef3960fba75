"""A pipeline: declared once, checked when it is loaded, run in every mode."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinstream.columns import nearest
from twinstream.deduplicate import Deduplicate
from twinstream.definition import canonical_callable, hash_definition
from twinstream.errors import DefinitionError
from twinstream.guarantees import Guarantee, check_delivery
from twinstream.operators import Operator
from twinstream.orchestration import Orchestration
from twinstream.prepare import Prepared, compile_prepare
from twinstream.settings import TIME_ZONE
from twinstream.sinks.delta import DeltaSink
from twinstream.sinks.kafka import KafkaSink
from twinstream.sources.base import Source
from twinstream.transaction import canonical_json
from twinstream.watermark import Watermark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Gate = Callable[["DataFrame"], "str | None"]
"""Looks at the rows of a group before they are committed and returns what is wrong with them, or None."""

SPARK_MINOR = "4.2"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,99}\Z")


def check_name(name: str) -> None:
    """Refuses a name that cannot be a pipeline's: it becomes part of paths, table names and DAG ids."""
    if not isinstance(name, str) or not _NAME.match(name) or "__" in name:
        raise DefinitionError(
            f"The pipeline name {name!r} is not usable.",
            next_step="Use lower-case letters, digits and single underscores, starting with a letter.",
        )


@dataclass(frozen=True)
class Checks:
    """What reconciliation and validation look at and overlook; no part of the definition's hash."""

    non_negative: tuple[str, ...] = ()
    """Columns of the result that are never below zero."""
    tolerance: Mapping[str, str] = field(default_factory=dict)
    """How far a numeric column may be off, as text: {"spend": "0.01"}."""
    exclude: tuple[str, ...] = ()
    """Columns of the result that are not compared."""
    mask: tuple[str, ...] = ()
    """Columns whose values no report shows."""


@dataclass(frozen=True)
class Pipeline:
    """A named definition: source, prepare, operator, watermark, sink."""

    name: str
    source: Source
    record_id: str
    event_time: str
    """A column of the source, or an SQL expression over its columns, that gives a timestamp."""
    operator: Operator
    sink: DeltaSink | KafkaSink
    prepare: str | Callable[[Any], Any] | None = None
    watermark: Watermark | None = None
    deduplicate: Deduplicate | None = None
    batch_records: int = 100_000
    gate: Gate | None = None
    delivery: str = "exactly-once"
    checks: Checks = field(default_factory=Checks)
    orchestration: Orchestration = field(default_factory=Orchestration)

    def __post_init__(self) -> None:
        check_name(self.name)
        if not isinstance(self.batch_records, int) or self.batch_records < 1:
            raise DefinitionError(f"batch_records is {self.batch_records!r}.", next_step="Use a whole number above 0.")
        if self.orchestration.mode == "continuous" and self.source.kind != "kafka":
            raise DefinitionError(
                f"Orchestration(mode='continuous') streams topics; {self.name} reads {self.source.kind}.",
                next_step="Leave mode out: new data starts micro-batches by itself.",
            )

    @property
    def table(self) -> str:
        """The path of its table, also where the result goes to a topic."""
        return self.sink.path or f"tables/{self.name}"

    @property
    def connections(self) -> tuple[str, ...]:
        """Names of the connections that source and sink need."""
        return tuple(dict.fromkeys((*self.source.connections, *self.sink.connections)))


@dataclass(frozen=True)
class Definition:
    """A pipeline that was loaded and found to be sound, with everything that follows from it."""

    pipeline: Pipeline
    prepared: Prepared
    guarantee: Guarantee
    file: Path
    canonical: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.pipeline.name

    @property
    def hash(self) -> str:
        return hash_definition(self.canonical)

    @property
    def text(self) -> str:
        """What the hash is taken of, as the ledger keeps it with a generation."""
        return canonical_json(self.canonical)

    @property
    def late(self) -> str:
        return self.pipeline.watermark.late if self.pipeline.watermark else "keep"

    @property
    def delay(self) -> int:
        return self.pipeline.watermark.delay_micros if self.pipeline.watermark else 0

    def columns(self, spark: SparkSession | None = None) -> dict[str, str]:
        """The prepared columns; asks Spark where only Spark can tell."""
        found = self.prepared.output
        if found is not None and all(kind is not None for kind in found.values()):
            return {name: kind for name, kind in found.items() if kind is not None}
        if spark is None:
            from twinstream.settings import Settings
            from twinstream.spark import open_session

            spark = open_session(Settings.from_env(), self.name)
        return self.columns_by_spark(spark)

    def needs_spark(self) -> bool:
        """Whether the columns cannot be known without Spark."""
        found = self.prepared.output
        return found is None or any(kind is None for kind in found.values())

    def columns_by_spark(self, spark: SparkSession) -> dict[str, str]:
        """The prepared columns as Spark sees them, checked against the operator."""
        from pyspark.errors import PySparkException

        from twinstream.runtime.classify import empty_input

        try:
            rows = self.prepared.apply(empty_input(spark, self.pipeline))
            found = {
                column.name: column.dataType.simpleString() for column in rows.schema if not column.name.startswith("_")
            }
        except PySparkException as error:
            raise DefinitionError(
                f"Spark does not accept prepare of {self.name}: {str(error).splitlines()[0]}",
                next_step=f"Correct prepare in {self.file.name}, then run `twinstream lint {self.name}`.",
            ) from error
        self.pipeline.operator.check(found)
        self.pipeline.sink.check(self.pipeline, found)
        return found


def check(pipeline: Pipeline, file: Path) -> Definition:
    """Checks a definition as far as it can be checked without Spark."""
    columns = pipeline.source.columns
    where = f"pipeline {pipeline.name}"
    if pipeline.record_id not in columns:
        raise DefinitionError(
            f"{where}: record_id {pipeline.record_id!r} is not a column of the source.",
            next_step=nearest(pipeline.record_id, list(columns)) or "Name the column that holds each record's id.",
        )
    _check_event_time(pipeline, columns, where)
    prepared = compile_prepare(pipeline.prepare, columns, file.parent)
    if prepared.output is not None:
        pipeline.operator.check(prepared.output)
    pipeline.sink.check(pipeline, prepared.output)
    canonical = {
        "source": pipeline.source.canonical(),
        "record_id": pipeline.record_id,
        "event_time": pipeline.event_time,
        "prepare": prepared.canonical,
        "operator": pipeline.operator.canonical(),
        "watermark": pipeline.watermark.canonical() if pipeline.watermark else None,
        "time_zone": TIME_ZONE,
        "ansi": True,
        "spark": SPARK_MINOR,
    }
    if pipeline.deduplicate is not None:
        canonical["deduplicate"] = pipeline.deduplicate.canonical()
    if pipeline.gate is not None:
        canonical_callable(pipeline.gate, file.parent)
    return Definition(pipeline, prepared, check_delivery(pipeline), file, canonical)


def _check_event_time(pipeline: Pipeline, columns: Mapping[str, str], where: str) -> None:
    if pipeline.event_time in columns:
        kind = columns[pipeline.event_time]
        if kind != "timestamp":
            raise DefinitionError(
                f"{where}: event_time {pipeline.event_time!r} is {kind}, not timestamp.",
                next_step="Declare the column as timestamp, or give an SQL expression such as timestamp_millis(ts).",
            )
    elif re.fullmatch(r"\w+", pipeline.event_time):
        raise DefinitionError(
            f"{where}: event_time {pipeline.event_time!r} is not a column of the source.",
            next_step=nearest(pipeline.event_time, list(columns)) or "Name the column that says when it happened.",
        )
