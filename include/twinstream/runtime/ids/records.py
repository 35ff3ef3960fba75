"""The records of a group, read from the source once and put down, so that their ids can be looked at before they count.

They are put down with their place in the source's order, which only one reading can tell: a second one may split the
same files at other places. What is read by one task is one file, in that order, so that most of it is told by the file.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinstream.failpoints import durable
from twinstream.paths import literal
from twinstream.pipeline import Pipeline
from twinstream.runtime.ids.copy import copy_ids
from twinstream.runtime.ids.known import KnownIds
from twinstream.runtime.ids.pick import pick
from twinstream.runtime.ids.suspects import suspects, times
from twinstream.small_table import small_table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

QUICK = {
    "compression": "none",
    "parquet.enable.dictionary": "false",
    "parquet.page.write-checksum.enabled": "false",
    "parquet.block.size": str(16 << 20),
    "parquet.column.statistics.enabled": "false",
    "parquet.size.statistics.enabled": "false",
}
"""How records are put down: they are read once, soon and as a whole, so that packing them would take longer. What is
gathered before it is written is small, because it is as long-lived as garbage in a small heap can be."""
_ORDER = {"_place": "string", "_part": "bigint", "_number": "bigint"}
"""A record's position, each part a column of its own, which takes less to put down than a struct. Where the source has
no number, the part was read by one task, and the row says which record came first."""
_STORED = {"_record_id": "string", "_event_micros": "bigint"}
_MINE = {"_task": "int", "_row": "bigint", "_txid": "bigint", **_ORDER, **_STORED}
_TASK_ROWS = 40
"""A task puts down fewer rows than a number of so many bits can count."""


@dataclass(frozen=True)
class Suspects:
    """Hashes that may be those of duplicates, and the files of known ids that have some of them."""

    hashes: Any
    files: list[Path]

    def __bool__(self) -> bool:
        return len(self.hashes) > 0


@dataclass
class Records:
    """The classified records of a group as files, without what can be told from the other columns."""

    spark: SparkSession
    pipeline: Pipeline
    folder: Path
    horizon: int
    batch_times: Mapping[int, int]
    """The time of every txid, in microseconds."""
    late_before: Mapping[int, int] = field(default_factory=dict)
    """Below which event time the records of a txid are late; to be said once the records are put down."""
    _schema: StructType | None = None

    def put_down(self, rows: DataFrame, places: bool) -> None:
        """Writes the records as they were read and classified.

        `_file` is needed to put records aside: of dead letters, and with `places` of all.
        """
        from pyspark.sql import functions as F

        alive = F.col("_reason").isNull()
        told = {"_kept", "_first", "_discarded", "_late_before", "_batch_time", "_record_id", "_event_time"}
        place = F.col("_position.place")
        number = F.col("_position.number") if self.pipeline.source.numbered else F.lit(None).cast("bigint")
        order = dict(zip(_ORDER, [F.when(place != "", place), F.col("_position.part"), number], strict=True))
        rows = rows.withColumns(
            {"_id_hash": F.when(alive, self._hash()), "_task": F.spark_partition_id(), **order}
        ).drop("_position")
        if not places:
            rows = rows.withColumn("_file", F.when(~alive, F.col("_file")))
        rows = rows.drop(*told - {self._id, self._time})
        self._schema = rows.schema
        with durable("stage.records"):
            rows.write.options(**QUICK).parquet(str(self._rows_folder))

    def forget(self) -> None:
        """Deletes the files."""
        self.drop(self.folder)

    def drop(self, folder: Path) -> None:
        """Deletes what was made of them."""
        with durable("stage.tidy"):
            shutil.rmtree(folder)

    @cached_property
    def times(self) -> dict[int, tuple[int, int]]:
        """The lowest and the highest event time of every txid that has any."""
        return times(self._files(), self._time)

    def suspects(self, known: KnownIds) -> Suspects:
        """Hashes of ids that some records may share, or have in common with records that are known."""
        hashes, paths = suspects(self._files(), self.times, self.horizon, known)
        return Suspects(hashes, [known.table / path for path in paths])

    def read(self, suspects: Suspects | None = None) -> DataFrame:
        """The records again, each with whether it is a `_duplicate`; none is where there are no suspects."""
        from pyspark.sql import functions as F

        rows = self._rows(numbered=bool(suspects))
        if not suspects:
            rows = rows.withColumn("_duplicate", F.lit(False))
        else:
            repeated = self._repeated(suspects)
            rows = rows.join(repeated.withColumn("_repeated", F.lit(True)), "_row", "left")
            rows = rows.withColumn("_duplicate", F.coalesce("_repeated", F.lit(False))).drop("_row", "_repeated")
        kept = F.col("_reason").isNull() & ~F.col("_duplicate")
        rows = rows.withColumns({"_record_id": F.col(f"`{self._id}`"), "_kept": kept, "_first": F.lit(True)})
        return rows.drop("_id_hash", "_event_micros", "_task", *_ORDER)

    def stage_ids(self, folder: Path) -> None:
        """Writes the ids that later records are compared with: of all but dead letters and late records."""
        copy_ids(self._files(), folder, self._id, self._time, self.late_before)

    def _repeated(self, suspects: Suspects) -> DataFrame:
        """The `_row` of every duplicate: among records with a suspicious hash the ids themselves decide."""
        from pyspark.sql import functions as F

        suspicious, known = self.folder / "suspicious", self.folder / "known"
        columns = {name: name for name in ("_task", "_txid", *_ORDER)}
        columns |= {self._id: "_record_id", self._time: "_event_micros"}
        pick(self._files(), suspects.hashes, suspicious, columns)
        pick(suspects.files, suspects.hashes, known, {name: name for name in _STORED})
        mine = self._picked(suspicious, _MINE).join(F.broadcast(self._facts()), "_txid").select(
            _one_of_all("_row").alias("_row"), *_STORED, F.struct("_txid", *_ORDER, "_row").alias("_place"),
            F.coalesce(F.col("_event_micros") < F.col("_late_before"), F.lit(False)).alias("_late"),
        )  # fmt: skip
        first = mine.where("not _late").groupBy(*_STORED).agg(F.min("_place").alias("_place"))
        stored = self._picked(known, _STORED).distinct()
        before = first.unionByName(stored, allowMissingColumns=True).toDF("_other_id", "_other_micros", "_other_place")
        apart = F.try_subtract(F.col("_event_micros"), F.col("_other_micros"))
        same = (
            (F.col("_record_id") == F.col("_other_id"))
            & apart.between(-self.horizon, self.horizon)
            & (F.col("_other_place").isNull() | (F.col("_other_place") < F.col("_place")))
        )
        found = self.folder / "repeated"
        # As a file its size is known: where it is small, as mostly, it goes to the records and not they to it.
        with durable("stage.repeated"):
            mine.join(before, same, "left_semi").select("_row").write.parquet(str(found))
        return self._picked(found, {"_row": "bigint"})

    def _picked(self, folder: Path, columns: Mapping[str, str]) -> DataFrame:
        schema = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        return self.spark.read.schema(schema).parquet(literal(folder))

    def _rows(self, numbered: bool) -> DataFrame:
        """What was put down and what can be told from it, with the time below which a record of its txid is late."""
        from pyspark.sql import functions as F

        assert self._schema is not None
        rows = self.spark.read.schema(self._schema).parquet(literal(self._rows_folder))
        if numbered:
            rows = rows.withColumn("_row", _one_of_all("_metadata.row_index"))
        moment = F.when(F.col("_reason").isNull(), F.col(f"`{self._time}`"))
        rows = rows.withColumns(
            {"_event_time": moment, "_event_micros": F.unix_micros(moment), "_discarded": F.lit(False)}
        )
        return rows.join(F.broadcast(self._facts()), "_txid")

    def _facts(self) -> DataFrame:
        """What all records of a txid have in common."""
        from pyspark.sql import functions as F

        facts = [
            {"_txid": txid, "_batch_micros": time, "_late_before": self.late_before.get(txid)}
            for txid, time in self.batch_times.items()
        ]
        table = small_table(self.spark, "_txid:bigint,_batch_micros:bigint,_late_before:bigint", facts)
        return table.withColumn("_batch_time", F.timestamp_micros("_batch_micros")).drop("_batch_micros")

    @property
    def _id(self) -> str:
        """The column that holds the id as text, under a name that means nothing else anywhere."""
        return self._plain(self.pipeline.record_id, "string") or "_record_id"

    @property
    def _time(self) -> str:
        """The column that holds the event time; of dead letters it means nothing."""
        return self._plain(self.pipeline.event_time, "timestamp") or "_event_time"

    def _plain(self, name: str, kind: str) -> str | None:
        return name if name.isidentifier() and self.pipeline.source.columns.get(name) == kind else None

    def _hash(self) -> Column:
        """64 bits that stand for an id where only likeness is asked for."""
        from pyspark.sql import functions as F

        return F.xxhash64("_record_id")

    def _files(self) -> list[Path]:
        return sorted(self._rows_folder.glob("*.parquet"))

    @property
    def _rows_folder(self) -> Path:
        return self.folder / "rows"


def _one_of_all(row: str) -> Column:
    """The number of a record among all of the group, by that of its row in the file of its task."""
    from pyspark.sql import functions as F

    return F.shiftleft(F.col("_task").cast("bigint"), _TASK_ROWS) + F.col(row)
