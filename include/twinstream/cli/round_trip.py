"""The proof that staging can be reached from both sides: Spark writes, the committer names, Spark reads again."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from twinstream.cli.checks import Check, failed, ok

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from twinstream.sinks.delta import DeltaStore
    from twinstream.transaction import Manifest, StagedFile

ROWS = 1_000
_NAME = "round trip"
_SHARE = "TWINSTREAM_HOME must be a folder that Spark and this process both reach under the same path."


def round_trip(spark: SparkSession, home: Path) -> Check:
    """Goes the way of a drain's rows once, in a throw-away table below `home`."""
    from twinstream.sinks.delta import DeltaStore

    folder = home / f".doctor-{secrets.token_hex(4)}"
    try:
        return _go(spark, DeltaStore(folder, "doctor", {"value": "bigint"}))
    except Exception as error:
        lines = str(error).strip().splitlines()
        return failed(_NAME, f"{type(error).__name__}: {lines[0] if lines else ''}", _SHARE)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _go(spark: SparkSession, store: DeltaStore) -> Check:
    from twinstream.runtime.staging import staged_files
    from twinstream.sinks.base import GroupCommit

    store.create()
    staging = store.new_staging()
    _write(spark, store.folder / staging)
    files = staged_files(store.folder, staging)
    if sum(file.rows for file in files) != ROWS:
        return failed(_NAME, f"Spark wrote {ROWS} rows to {store.folder}, but they cannot be seen from here", _SHARE)
    store.fence(1)
    store.commit(GroupCommit(1, (_manifest(files),), tuple(files)))
    named = {file.path: file.size for file in store.snapshot().files["partial"]}
    if named != {file.path: file.size for file in files}:
        return failed(_NAME, "the Delta table does not name the files with their sizes", "Please report this.")
    read = spark.read.parquet(*(str(store.folder / path) for path in named)).count()
    if read != ROWS:
        return failed(_NAME, f"Spark read {read} of {ROWS} rows", _SHARE)
    size = sum(named.values())
    return ok(_NAME, f"Spark wrote {size} bytes, the committer saw and named them, Spark read {ROWS} rows again")


def _write(spark: SparkSession, folder: Path) -> None:
    from pyspark.sql import functions as F

    rows = spark.range(ROWS).select(
        F.lit("partial").alias("_kind"), F.lit(1).cast("bigint").alias("_txid"), F.col("id").alias("value")
    )
    rows.coalesce(1).write.partitionBy("_kind").parquet(str(folder))


def _manifest(files: list[StagedFile]) -> Manifest:
    from twinstream.transaction import Accounting, Manifest, Range, Tally

    nothing = Range(payload={}, records=0, size=0)
    return Manifest(
        txid=1,
        attempt=1,
        epoch=1,
        range_digest=nothing.digest,
        range=nothing,
        batch_time=0,
        highest_event_time=None,
        watermark=None,
        late_before=None,
        accounting=Accounting(),
        digest=Tally(),
        definition_hash="doctor",
        files=tuple(file.path for file in files),
    )
