"""Reading planned files with Spark, each record with the txid of its file.

JSON takes the fast reader where the scan saw plain lines, and text plus from_json where it did not (blank lines,
arrays, something behind an object): the fast reader would give more or fewer records than there are lines.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from twinstream.paths import literal
from twinstream.small_table import small_table
from twinstream.sources.base import FACTS, Slice
from twinstream.sources.wide import misfit, narrow, widened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from twinstream.sources.files import FileSource

_CORRUPT = "_raw"
_STRICT = {"columnNameOfCorruptRecord": _CORRUPT, "mode": "PERMISSIVE", "allowSingleQuotes": "false"}


def read_files(spark: SparkSession, source: FileSource, files: Sequence[tuple[Slice, Path, bool]]) -> DataFrame:
    """The records of the files (slice, path, plain) with the slice's facts, `_file`, `_raw`, `_misfit`."""
    from pyspark.sql import functions as F

    if source.format == "parquet":
        rows = spark.read.schema(_ddl(source.columns)).parquet(*(literal(path) for _, path, _ in files))
        rows = rows.select(
            "*",
            F.col("_metadata.file_path").alias("_path"),
            F.lit(None).cast("string").alias(_CORRUPT),
            F.lit(None).cast("string").alias("_misfit"),
        )
    else:
        rows = _read_json(spark, source, files)
    facts = small_table(
        spark,
        f"_path:string,_file:string,{FACTS}",
        [{"_path": uri, "_file": str(path), **piece.facts()} for piece, path, _ in files for uri in spellings(path)],
    )
    return rows.join(F.broadcast(facts), "_path").drop("_path")


def spellings(path: Path) -> tuple[str, str]:
    """How Spark's `_metadata.file_path` may spell a local path: only what is illegal in an address is escaped."""
    legal = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.!~*'(),;:$&+=/@")
    escaped = "".join(letter if letter in legal or _other(letter) else _escaped(letter) for letter in str(path))
    return f"file:{escaped}", f"file://{escaped}"


def _other(letter: str) -> bool:
    """What Java's addresses leave as it is beyond ASCII: all but control characters and spaces."""
    return ord(letter) >= 0xA0 and unicodedata.category(letter) not in ("Zs", "Zl", "Zp")


def _escaped(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode())


def _read_json(spark: SparkSession, source: FileSource, files: Sequence[tuple[Slice, Path, bool]]) -> DataFrame:
    from functools import reduce

    wide = source.columns if source.rounding else widened(source.columns)
    frames = []
    plain = [literal(path) for _, path, is_plain in files if is_plain]
    other = [literal(path) for _, path, is_plain in files if not is_plain]
    if plain:
        frames.append(_fast(spark, wide, plain))
    if other:
        frames.append(_careful(spark, wide, other))
    return narrow(
        reduce(lambda one, two: one.unionByName(two), frames), source.columns, wide, misfit(source.columns, wide)
    )


def _fast(spark: SparkSession, columns: dict[str, str], paths: list[str]) -> DataFrame:
    from pyspark.sql import functions as F

    reader = spark.read.schema(f"{_ddl(columns)}, {_CORRUPT} string")
    return (
        reader.options(**_STRICT, lineSep="\n", encoding="UTF-8")
        .json(paths)
        .select("*", F.col("_metadata.file_path").alias("_path"))
    )


def _careful(spark: SparkSession, columns: dict[str, str], paths: list[str]) -> DataFrame:
    from pyspark.sql import functions as F

    lines = spark.read.option("lineSep", "\n").text(paths).select("value", F.col("_metadata.file_path").alias("_path"))
    lines = lines.where(F.col("value").rlike("[^ \\t\\r]")).withColumn("value", F.ltrim("value", F.lit("\ufeff")))
    parsed = F.from_json("value", f"{_ddl(columns)}, {_CORRUPT} string", _STRICT)
    rows = lines.select("value", "_path", F.inline(F.array(parsed)))
    one_object = F.col("value").rlike("^[ \\t]*\\{") & (
        F.coalesce(F.json_array_length(F.concat(F.lit("["), F.col("value"), F.lit("]"))), F.lit(0)) == 1
    )
    return rows.withColumn(_CORRUPT, F.when(~one_object, F.col("value")).otherwise(F.col(_CORRUPT))).drop("value")


def _ddl(columns: dict[str, str]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
