"""Processing a group: one Spark job turns the union of its ranges into staged partials, dead letters and tallies.

Everything that is counted later is in what this one pass wrote: per txid every record stands in exactly one class.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from twinstream.errors import AccountingOpen, SourceChanged, SourceUnreadable, TwinstreamError
from twinstream.failpoints import durable
from twinstream.paths import literal
from twinstream.pipeline import Definition
from twinstream.runtime.classify import Classifier, as_text
from twinstream.runtime.explain import explained
from twinstream.runtime.ids.known import IDS, KnownIds
from twinstream.runtime.ids.records import Records
from twinstream.runtime.staging import staged_files
from twinstream.runtime.staging_columns import DEAD, EMITTED, StagingColumns
from twinstream.runtime.summary import Closing, Seen, closed, summarised
from twinstream.runtime.tallies import TALLY, TALLY_COLUMNS, of_records
from twinstream.small_table import small_table
from twinstream.sources.base import Places, Slice
from twinstream.transaction import Accounting, Batch, Staged, StagedFile, Tally, TxidResult, next_watermark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation, SparkSession

SMALL = 20_000
"""So many records are one task's work: to spread them takes longer than to process them."""
_NAMES = dict(enumerate(("emitted", "filtered", "dead", "discarded", "late", "duplicate")))


def stored_columns(definition: Definition, columns: Mapping[str, str]) -> dict[str, str]:
    """Columns of a stored partial: the operator's state, and what accounts for the records behind it."""
    operator = definition.pipeline.operator
    counted = {"_hash": "bigint", "_first": "boolean"} if operator.stateless else TALLY_COLUMNS
    return {"_txid": "bigint"} | operator.state_columns(columns) | counted


class SparkProcessor:
    """Processes groups of a pipeline on one Spark session."""

    def __init__(
        self, spark: SparkSession, definition: Definition, columns: Mapping[str, str], places: Places, table: Path,
        expects_duplicates: bool = False,
    ) -> None:  # fmt: skip
        self._spark = spark
        self._definition = definition
        self._pipeline = definition.pipeline
        self._columns = columns
        self._places = places
        self._table = table
        self._known = KnownIds(table)
        self._expects_duplicates = expects_duplicates
        self._classify = Classifier(definition.pipeline)
        self._staging = StagingColumns(definition.pipeline.operator.state_columns(columns))

    @property
    def in_order(self) -> bool:
        return self._decides_lateness or self._pipeline.deduplicate is not None

    @cached_property
    def _decides_lateness(self) -> bool:
        """Where partials have no window, or duplicates depend on it, late records must be told while processing."""
        from pyspark.sql import functions as F

        if self._definition.late == "keep":
            return False
        by_partials = self._pipeline.operator.late(F.lit(None).cast("timestamp")) is not None
        return self._pipeline.deduplicate is not None or not by_partials

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
        if self._pipeline.deduplicate is not None and not discarded:
            return self._process_once(batches, staging, watermark, started)
        late_before: dict[int, int | None] = {}
        if self._decides_lateness:
            late_before = self._late_before(batches, watermark, self._highest(batches))
        seen = self._stage(self._read(batches, late_before), staging, discarded)
        self._verify(batches)
        files = staged_files(self._table, staging)
        results = self._summarise(batches, files, discarded)
        self._check(batches, results, seen)
        kept = [file for file in files if file.kind in ("partial", "dead")]
        limits = self._to_put_aside(results, late_before)
        if limits:
            kept += self.stage_late([batch for batch in batches if batch.txid in limits], staging, limits)
        return Staged(tuple(kept), results, time.monotonic() - started)

    def _process_once(self, batches: Sequence[Batch], staging: str, watermark: int | None, started: float) -> Staged:
        """The group of a pipeline that deduplicates: its ids are looked at, and kept beside its partials.

        Where no duplicates are expected the group is staged while its ids are looked for. If that finds some after all,
        it is staged once more.
        """
        assert self._pipeline.deduplicate is not None
        folder = self._table / staging / "records"
        times = {batch.txid: batch.batch_time for batch in batches}
        records = Records(self._spark, self._pipeline, folder, self._pipeline.deduplicate.horizon_micros, times)
        records.put_down(self._read(batches, {}, positions=True), places=self._definition.late == "side")
        self._verify(batches)
        if self._decides_lateness:
            highest = {txid: high for txid, (_, high) in records.times.items()}
            limits = self._late_before(batches, watermark, highest)
            window = self._pipeline.operator.window
            width = window.micros if window else 1
            records.late_before = {txid: at - at % width for txid, at in limits.items() if at is not None}
        with ThreadPoolExecutor(max_workers=1) as beside:
            looking = beside.submit(records.suspects, self._known)
            copying = beside.submit(records.stage_ids, self._table / staging / IDS)
            rows = records.read(looking.result() if self._expects_duplicates else None)
            seen = self._stage(rows, f"{staging}/rows", discarded=False)
            suspects = looking.result()
            copying.result()
        if suspects and not self._expects_duplicates:
            records.drop(self._table / staging / "rows")
            rows = records.read(suspects)
            seen = self._stage(rows, f"{staging}/rows", discarded=False)
        self._expects_duplicates = bool(suspects)
        files = staged_files(self._table, f"{staging}/rows")
        results = self._summarise(batches, files, discarded=False)
        self._check(batches, results, seen)
        kept = [file for file in files if file.kind in ("partial", "dead")]
        aside = self._to_put_aside(results, records.late_before)
        if aside:
            kept += self._stage_late(rows, staging, aside)
        kept += staged_files(self._table, f"{staging}/{IDS}")
        records.forget()
        return Staged(tuple(kept), results, time.monotonic() - started)

    def _to_put_aside(self, results: Sequence[TxidResult], late_before: Mapping[int, int | None]) -> dict[int, int]:
        """The limits of the txids with late records to be put aside, where processing has told them."""
        if not self._decides_lateness or self._definition.late != "side":
            return {}
        late = {result.txid: late_before.get(result.txid) for result in results if result.accounting.late.count}
        return {txid: limit for txid, limit in late.items() if limit is not None}

    def late_tallies(self, files: Sequence[StagedFile], late_before: Mapping[int, int]) -> dict[int, tuple[Tally, int]]:
        """Which staged records are late, now that the watermark is fixed: tally and rows per txid."""
        paths = [self._table / file.path for file in files if file.kind == "partial"]
        closing = self._stored_closing()
        assert closing is not None
        return closed(paths, self._pipeline.operator.stateless, closing, dict(late_before))

    def stage_late(self, batches: Sequence[Batch], staging: str, late_before: Mapping[int, int]) -> list[StagedFile]:
        """Writes the late records themselves, read once more from the source, beside the staged partials."""
        return self._stage_late(self._read(batches, {}), staging, late_before)

    def _stage_late(self, rows: DataFrame, staging: str, late_before: Mapping[int, int]) -> list[StagedFile]:
        from pyspark.sql import functions as F

        rows = self._prepared(rows)
        rows = (
            rows.where(self._class(rows) == EMITTED)
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

    def _read(
        self, batches: Sequence[Batch], late_before: Mapping[int, int | None], positions: bool = False
    ) -> DataFrame:
        rows = self._pipeline.source.read(self._spark, self._places, self._slices(batches, late_before), positions)
        if sum(batch.range.records for batch in batches) <= SMALL:
            rows = rows.coalesce(1)
        return self._classify(rows)

    def _prepared(self, rows: DataFrame) -> DataFrame:
        """Runs prepare; a record's own text rides along in `_text` for those that need it."""
        rows = rows.withColumn("_text", as_text(self._pipeline.source.columns))
        return self._definition.prepared.apply(rows)

    def _highest(self, batches: Sequence[Batch]) -> dict[int, int]:
        """One pass for the highest event times, so that the next can tell late rows."""
        from pyspark.sql import functions as F

        rows = self._read(batches, {}).where("_reason is null")
        found = rows.groupBy("_txid").agg(F.max(F.unix_micros("_event_time")).alias("highest")).collect()
        return {row["_txid"]: row["highest"] for row in found}

    def _late_before(
        self, batches: Sequence[Batch], watermark: int | None, highest: Mapping[int, int]
    ) -> dict[int, int | None]:
        """The watermark before each txid, below which its records are late."""
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

        observation = None if discarded or self._definition.prepared.one_to_one else Observation()
        if observation is not None:
            rows = rows.observe(observation, *of_records())
        operator = self._pipeline.operator
        made = self._staging
        if not discarded:
            rows = self._definition.prepared.apply(rows)
        rows = rows.withColumn("_class", self._class(rows, self._is_late() if self._decides_lateness else None))
        rows = rows.withColumns({"_kept": made.kept, "_dead": made.dead})
        if discarded:
            staged = rows.select("_txid", "_class", "_dead", "_hash", "_first", "_event_time", made.once)
        elif operator.stateless:
            rows = rows.withColumn("_occurrences", made.once)
            staged = operator.partial(rows, ["_txid", "_class", "_dead", "_hash", "_first", "_occurrences"], [])
        else:
            staged = operator.partial(rows, ["_txid", "_class", "_dead"], made.tallied)
            staged = staged.withColumn("_occurrences", made.occurrences)
        more = [made.kind] if discarded else [made.digest, made.kind]
        staged = staged.withColumn("_dead", made.told).select("*", "_dead.*", *more).drop("_dead")
        with durable("stage.group"):
            staged.write.partitionBy("_kind").parquet(str(self._table / staging))
        return None if observation is None else _observed(observation)

    def _summarise(
        self, batches: Sequence[Batch], files: Sequence[StagedFile], discarded: bool
    ) -> tuple[TxidResult, ...]:
        """Reads back what was written, and says for each txid what is in it."""
        by_record = self._pipeline.operator.stateless or discarded
        found = summarised([self._table / file.path for file in files], by_record, self._stored_closing())
        return tuple(
            _result(batch.txid, {kind: seen for (txid, kind), seen in found.items() if txid == batch.txid})
            for batch in batches
        )

    def _class(self, rows: DataFrame, late: Column | None = None) -> Column:
        return self._staging.class_of("_duplicate" in rows.columns, late)

    def _stored_closing(self) -> Closing | None:
        """When a stored row would be late; None where stored rows cannot tell."""
        operator = self._pipeline.operator
        if operator.stateless:
            return Closing("_event_time", 1)
        return None if operator.window is None else Closing("window_start", operator.window.micros)

    def _closes_at(self) -> Column:
        """When a record would be late, in microseconds."""
        from pyspark.sql import functions as F

        window = self._pipeline.operator.window
        at = F.unix_micros("_event_time")
        if window is None:
            return at + F.lit(1)
        return at - F.pmod(at, F.lit(window.micros)) + F.lit(window.micros)

    def _is_late(self) -> Column:
        """Whether a record is late by the limit that it carries."""
        from pyspark.sql import functions as F

        return self._closes_at() <= F.col("_late_before")

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


def _result(txid: int, by_class: Mapping[int, Seen]) -> TxidResult:
    emitted = by_class.get(EMITTED, Seen())
    times = [seen.highest for kind, seen in by_class.items() if kind != DEAD and seen.highest is not None]
    return TxidResult(
        txid=txid,
        accounting=Accounting(
            **{name: by_class[number].tally for number, name in _NAMES.items() if number in by_class},
            rows_out=emitted.rows,
        ),
        highest_event_time=max(times, default=None),
        earliest_closing=emitted.closing,
        digest=emitted.digest,
    )


def _unread(batch: Batch) -> TxidResult:
    """A discarded txid whose records cannot be read any more: as much is known of them as was logged before."""
    discarded = batch.input or Tally(batch.range.records)
    return TxidResult(batch.txid, Accounting(discarded=discarded), batch.highest_event_time, None, Tally())


def _ddl(columns: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
