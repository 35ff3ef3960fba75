"""Processing a group: one Spark job turns the union of its ranges into staged partials, dead letters and tallies.

Everything that is counted later is in what this one pass wrote: per txid every record stands in exactly one class.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinstream.errors import AccountingOpen, SourceChanged, SourceUnreadable, TwinstreamError
from twinstream.failpoints import durable
from twinstream.paths import literal
from twinstream.pipeline import Definition
from twinstream.runtime.classify import as_text, classified
from twinstream.runtime.explain import explained
from twinstream.runtime.staging import staged_files
from twinstream.runtime.tallies import TALLY, TALLY_COLUMNS, of_records, of_tallies, row_digest
from twinstream.small_table import small_table
from twinstream.sources.base import Places, Slice
from twinstream.transaction import Accounting, Batch, Staged, StagedFile, Tally, TxidResult, next_watermark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation, SparkSession

EMITTED, FILTERED, DEAD, DISCARDED, LATE = range(5)
_NAMES = {EMITTED: "emitted", FILTERED: "filtered", DEAD: "dead", DISCARDED: "discarded", LATE: "late"}


def stored_columns(definition: Definition, columns: Mapping[str, str]) -> dict[str, str]:
    """Columns of a stored partial: the operator's state, and what accounts for the records behind it."""
    operator = definition.pipeline.operator
    counted = {"_hash": "bigint", "_first": "boolean"} if operator.stateless else TALLY_COLUMNS
    return {"_txid": "bigint"} | operator.state_columns(columns) | counted


class SparkProcessor:
    """Processes groups of a pipeline on one Spark session."""

    def __init__(
        self, spark: SparkSession, definition: Definition, columns: Mapping[str, str], places: Places, table: Path
    ) -> None:
        self._spark = spark
        self._definition = definition
        self._pipeline = definition.pipeline
        self._columns = columns
        self._places = places
        self._table = table

    @property
    def decides_lateness(self) -> bool:
        """Partials without a window cannot tell late rows from others: the watermark must be known beforehand."""
        from pyspark.sql import functions as F

        late = self._definition.late != "keep"
        return late and self._pipeline.operator.late(F.lit(None).cast("timestamp")) is None

    def process(self, batches: Sequence[Batch], staging: str, watermark: int | None) -> Staged:
        """Runs the group's job and returns what it staged; raises if the source is not what was planned."""
        discarded = batches[0].discard_reason is not None
        try:
            return self._process(batches, staging, watermark, discarded)
        except Exception as error:
            told = self._cause(batches, error)
            if discarded and isinstance(told, SourceChanged | SourceUnreadable):
                return Staged((), tuple(_unread(batch) for batch in batches))
            if told is error:
                raise
            raise told from error

    def _process(self, batches: Sequence[Batch], staging: str, watermark: int | None, discarded: bool) -> Staged:
        started = time.monotonic()
        self._verify(batches)
        late_before = self._late_before(batches, watermark) if self.decides_lateness else {}
        seen = self._stage(self._read(batches, late_before), staging, discarded)
        self._verify(batches)
        files = staged_files(self._table, staging)
        results = self._summarise(batches, files, discarded)
        self._check(batches, results, seen)
        kept = [file for file in files if file.kind in ("partial", "dead")]
        if self.decides_lateness and self._definition.late == "side":
            late = {result.txid: late_before.get(result.txid) for result in results if result.accounting.late.count}
            limits = {txid: limit for txid, limit in late.items() if limit is not None}
            if limits:
                kept += self.stage_late([batch for batch in batches if batch.txid in limits], staging, limits)
        return Staged(tuple(kept), results, time.monotonic() - started)

    def late_tallies(self, files: Sequence[StagedFile], late_before: Mapping[int, int]) -> dict[int, tuple[Tally, int]]:
        """Which staged records are late, now that the watermark is fixed: tally and rows per txid."""
        from pyspark.sql import functions as F

        paths = [literal(self._table / file.path) for file in files if file.kind == "partial"]
        if not paths or not late_before:
            return {}
        rows = self._spark.read.schema(_ddl(stored_columns(self._definition, self._columns))).parquet(*paths)
        rows = rows.join(F.broadcast(self._thresholds(late_before)), "_txid")
        late = self._pipeline.operator.late(F.timestamp_micros("_threshold"))
        assert late is not None
        tallied = of_records(F.col("_first")) if self._pipeline.operator.stateless else of_tallies()
        found = rows.where(late).groupBy("_txid").agg(*tallied, F.count(F.lit(1)).alias("rows")).collect()
        return {row["_txid"]: (Tally.of_halves(*(row[name] for name in TALLY)), row["rows"]) for row in found}

    def stage_late(self, batches: Sequence[Batch], staging: str, late_before: Mapping[int, int]) -> list[StagedFile]:
        """Writes the late records themselves, read once more from the source, beside the staged partials."""
        from pyspark.sql import functions as F

        rows = self._prepared(self._read(batches, {}))
        rows = (
            rows.where(_class(False) == EMITTED)
            .where("_first")
            .join(F.broadcast(self._thresholds(late_before)), "_txid")
        )
        rows = rows.where(self._closes_at() <= F.col("_threshold"))
        late = rows.groupBy("_txid", "_file", F.col("_hash").alias("_line"), F.col("_text").alias("_raw")).agg(
            F.count(F.lit(1)).alias("_occurrences")
        )
        late = late.withColumns({"_reason": F.lit("late"), "_kind": F.lit("late")})
        folder = f"{staging}/late-{time.monotonic_ns():x}"
        with durable("stage.late"):
            late.write.partitionBy("_kind").parquet(str(self._table / folder))
        return staged_files(self._table, folder)

    def gate(self, files: Sequence[StagedFile]) -> str | None:
        """Shows the rows that the group would add to the result to the pipeline's gate."""
        paths = [literal(self._table / file.path) for file in files if file.kind == "partial"]
        operator = self._pipeline.operator
        if self._pipeline.gate is None or not paths:
            return None
        rows = self._spark.read.schema(_ddl(stored_columns(self._definition, self._columns))).parquet(*paths)
        return self._pipeline.gate(operator.present(operator.merge(rows)))

    def _cause(self, batches: Sequence[Batch], error: Exception) -> Exception:
        """A source that changed under the reader explains whatever the reader said about it."""
        if not isinstance(error, TwinstreamError):
            try:
                self._verify(batches)
            except TwinstreamError as changed:
                return changed
        return explained(error) or error

    def _verify(self, batches: Sequence[Batch]) -> None:
        for changed in self._pipeline.source.changes(self._places, [batch.range for batch in batches]).values():
            raise changed

    def _slices(self, batches: Sequence[Batch], late_before: Mapping[int, int | None]) -> list[Slice]:
        return [
            Slice(
                batch.txid, batch.range, batch.batch_time, batch.discard_reason is not None, late_before.get(batch.txid)
            )
            for batch in batches
        ]

    def _read(self, batches: Sequence[Batch], late_before: Mapping[int, int | None]) -> DataFrame:
        slices = self._slices(batches, late_before)
        return classified(self._pipeline.source.read(self._spark, self._places, slices), self._pipeline)

    def _prepared(self, rows: DataFrame) -> DataFrame:
        """Runs prepare; a record's own text rides along in `_text` for those that need it."""
        rows = rows.withColumn("_text", as_text(self._pipeline.source.columns))
        return self._definition.prepared.apply(rows)

    def _late_before(self, batches: Sequence[Batch], watermark: int | None) -> dict[int, int | None]:
        """One pass for the highest event times, so that the next can tell late rows."""
        from pyspark.sql import functions as F

        rows = self._read(batches, {}).where("_reason is null")
        found = rows.groupBy("_txid").agg(F.max(F.unix_micros("_event_time")).alias("highest")).collect()
        highest = {row["_txid"]: row["highest"] for row in found}
        limits: dict[int, int | None] = {}
        for batch in batches:
            limits[batch.txid] = None if batch.exempt else watermark
            watermark = next_watermark(watermark, highest.get(batch.txid), self._definition.delay)
        return limits

    def _stage(self, rows: DataFrame, staging: str, discarded: bool) -> Tally | None:
        """Writes the group's staged files in one job; returns the tally of all records as they were read.

        None where every record stays one row by the way prepare is built: there what is staged is what was read, the
        count is checked against the source's own, and watching every row go by would cost a tenth more.
        """
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        observation = None if discarded or self._definition.prepared.one_to_one else Observation()
        if observation is not None:
            rows = rows.observe(observation, *of_records())
        operator = self._pipeline.operator
        if not discarded:
            rows = self._definition.prepared.apply(rows)
        rows = rows.withColumn("_class", _class(self.decides_lateness))
        rows = rows.withColumn("_kept", F.col("_class") == EMITTED)
        # A text is cheaper to group by than a struct, and there are few of them.
        dead = F.to_json(F.struct("_reason", "_file", "_raw", F.col("_hash").alias("_line")))
        rows = rows.withColumn("_dead", F.when(F.col("_class") == DEAD, dead))
        if discarded:
            staged = rows.select("_txid", "_class", "_dead", "_hash", "_first", "_event_time")
            staged = staged.withColumn("_occurrences", F.lit(1).cast("bigint"))
        elif operator.stateless:
            rows = rows.withColumn("_occurrences", F.lit(1).cast("bigint"))
            staged = operator.partial(rows, ["_txid", "_class", "_dead", "_hash", "_first", "_occurrences"], [])
        else:
            highest = F.max(F.when(F.col("_class") != DEAD, F.unix_micros("_event_time"))).alias("_highest")
            staged = operator.partial(rows, ["_txid", "_class", "_dead"], [*of_records(F.col("_first")), highest])
            staged = staged.withColumn("_occurrences", F.col("_records"))
        kind = F.when(F.col("_class") == EMITTED, "partial").when(F.col("_class") == DEAD, "dead").otherwise("counts")
        told = F.from_json("_dead", "_reason string, _file string, _raw string, _line bigint")
        staged = staged.withColumn("_dead", told).select("*", "_dead.*", kind.alias("_kind")).drop("_dead")
        with durable("stage.group"):
            staged.write.partitionBy("_kind").parquet(str(self._table / staging))
        return None if observation is None else _observed(observation)

    def _summarise(
        self, batches: Sequence[Batch], files: Sequence[StagedFile], discarded: bool
    ) -> tuple[TxidResult, ...]:
        """Reads back what was written, and says for each txid what is in it."""
        from pyspark.sql import functions as F

        operator = self._pipeline.operator
        found: list[Any] = []
        if files:
            by_record = operator.stateless or discarded
            extra = {"_hash": "bigint", "_first": "boolean", "_event_time": "timestamp"} if by_record else {}
            schema = {"_class": "int", "_highest": "bigint"} | stored_columns(self._definition, self._columns) | extra
            rows = self._spark.read.schema(_ddl(schema)).parquet(*(literal(self._table / file.path) for file in files))
            emitted = F.col("_class") == EMITTED
            rows = rows.withColumn("_digest", F.when(emitted, row_digest(list(self._state().items()))))
            low = F.col("_digest").bitwiseAND(F.lit(0xFFFFFFFF).cast("bigint"))
            moment = F.unix_micros("_event_time") if by_record else F.col("_highest")
            highest = F.max(F.when(F.col("_class") != DEAD, moment))
            tallied = of_records(F.col("_first")) if by_record else of_tallies()
            found = (
                rows.groupBy("_txid", "_class")
                .agg(
                    *tallied,
                    highest.alias("highest"),
                    F.min(F.when(emitted, self._stored_closing())).alias("closing"),
                    F.count(F.when(emitted, F.lit(1))).alias("rows"),
                    F.sum(low).alias("digest_low"),
                    F.sum(F.shiftright("_digest", 32)).alias("digest_high"),
                    F.bit_xor("_digest").alias("digest_xor"),
                )
                .collect()
            )
        return tuple(_result(batch.txid, [row for row in found if row["_txid"] == batch.txid]) for batch in batches)

    def _state(self) -> dict[str, str]:
        return self._pipeline.operator.state_columns(self._columns)

    def _stored_closing(self) -> Column:
        """When a stored row would be late, in microseconds; null where stored rows cannot tell."""
        from pyspark.sql import functions as F

        operator = self._pipeline.operator
        if operator.stateless:
            return F.unix_micros("_event_time") + F.lit(1)
        if operator.window is None:
            return F.lit(None).cast("bigint")
        return F.unix_micros("window_start") + F.lit(operator.window.micros)

    def _closes_at(self) -> Column:
        """When a record would be late, in microseconds."""
        from pyspark.sql import functions as F

        window = self._pipeline.operator.window
        at = F.unix_micros("_event_time")
        if window is None:
            return at + F.lit(1)
        return at - F.pmod(at, F.lit(window.micros)) + F.lit(window.micros)

    def _thresholds(self, late_before: Mapping[int, int]) -> DataFrame:
        rows = [{"_txid": txid, "_threshold": limit} for txid, limit in late_before.items()]
        return small_table(self._spark, "_txid:bigint,_threshold:bigint", rows)

    def _check(self, batches: Sequence[Batch], results: Sequence[TxidResult], seen: Tally | None) -> None:
        """Rule 1 and rule 10: as many records as the source holds, the same as last time, each in one class."""
        total = Tally()
        for batch, result in zip(batches, results, strict=True):
            read = result.accounting.read
            total = total + read
            if batch.input is not None and batch.input != read:
                raise SourceChanged(
                    f"Txid {batch.txid} read {read.count} records, other ones than the {batch.input.count} it read "
                    "the first time.",
                    untouched="Nothing of this attempt was committed.",
                    next_step="Bring back the source as it was, or `twinstream discard` the txid with a reason.",
                )
            if batch.range.exact and read.count != batch.range.records:
                raise AccountingOpen(
                    f"Txid {batch.txid} accounts for {read.count} records, but the source holds {batch.range.records}.",
                    untouched="Nothing of this attempt was committed.",
                    next_step="A file may have changed while it was read: run the command again.",
                )
        if seen is not None and total != seen:
            raise AccountingOpen(
                f"Txids {batches[0].txid} to {batches[-1].txid} account for {total.count} records, "
                f"but {seen.count} were read, or not the same ones.",
                untouched="Nothing of this attempt was committed.",
                next_step="Run the command again; if it happens again, a UDF in prepare may not be deterministic.",
            )


def _observed(observation: Observation) -> Tally:
    """What was seen going by; Spark has nothing to say where it found that there are no records at all."""
    try:
        seen = observation.get
    except Exception:
        return Tally()
    return Tally.of_halves(*(seen[name] for name in TALLY))


def _class(decides_lateness: bool) -> Column:
    from pyspark.sql import functions as F

    found = F.when(F.col("_reason").isNotNull(), DEAD).when(F.col("_discarded"), DISCARDED)
    found = found.when(~F.col("_kept"), FILTERED)
    if decides_lateness:
        found = found.when(F.unix_micros("_event_time") < F.col("_late_before"), LATE)
    return found.otherwise(EMITTED)


def _result(txid: int, rows: Sequence[Any]) -> TxidResult:
    by_class = {row["_class"]: row for row in rows}
    tallies = {
        name: Tally.of_halves(*(by_class[number][column] for column in TALLY))
        for number, name in _NAMES.items()
        if number in by_class
    }
    emitted = by_class.get(EMITTED)
    times = [row["highest"] for row in rows if row["highest"] is not None]
    return TxidResult(
        txid=txid,
        accounting=Accounting(**tallies, rows_out=emitted["rows"] if emitted else 0),
        highest_event_time=max(times) if times else None,
        earliest_closing=emitted["closing"] if emitted else None,
        digest=Tally.of_halves(emitted["rows"], emitted["digest_low"], emitted["digest_high"], emitted["digest_xor"])
        if emitted
        else Tally(),
    )


def _unread(batch: Batch) -> TxidResult:
    """A discarded txid whose records cannot be read any more: as much is known of them as was logged before."""
    discarded = batch.input or Tally(batch.range.records)
    return TxidResult(batch.txid, Accounting(discarded=discarded), batch.highest_event_time, None, Tally())


def _ddl(columns: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
