"""Reading planned files with Spark, each record with the txid of its file.

JSON takes the fast reader where the scan saw plain lines, and text plus from_json where it did not (blank lines,
arrays, something behind an object): the fast reader would give more or fewer records than there are lines.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from twinstream.paths import literal
from twinstream.small_table import looked_up, small_table
from twinstream.sources.base import FACTS, Slice
from twinstream.sources.json_text import RAW, STRICT, ddl, parsed
from twinstream.sources.wide import misfit, narrow, widened

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from twinstream.sources.files import FileSource

A_HANDFUL = 8
"""So many files are told apart without a join."""
_FIELDS = f"_file:string,_start:bigint,{FACTS}"


@dataclass(frozen=True)
class ToRead:
    """A file, and what the scan saw in it."""

    piece: Slice
    path: Path
    size: int
    plain: bool
    """Spark's fast reader sees one record a line."""
    fits: bool
    """No number has more digits after its point than its column."""


def read_files(spark: SparkSession, source: FileSource, files: Sequence[ToRead], positions: bool = False) -> DataFrame:
    """The records of the files with the slice's facts, `_file`, `_raw`, `_misfit` and, where asked for, `_position`."""
    from pyspark.sql import functions as F

    if source.format == "parquet":
        rows = spark.read.schema(ddl(source.columns)).parquet(*(literal(file.path) for file in files))
        rows = rows.select(
            "*",
            *_places(positions),
            F.lit(None).cast("string").alias(RAW),
            F.lit(None).cast("string").alias("_misfit"),
        )
    else:
        rows = _read_json(spark, source, files, positions)
    starts = _starts(files)
    facts = {
        uri: {"_file": str(file.path), "_start": starts[file.path], **file.piece.facts()}
        for file in files
        for uri in spellings(file.path)
    }
    keyed = {hash_of(uri): one for uri, one in facts.items()}
    if len(files) <= A_HANDFUL or len(keyed) < len(facts):
        rows = rows.withColumn("_path", looked_up(F.col("_path"), _FIELDS, facts)).select("*", "_path.*").drop("_path")
    else:
        table = small_table(spark, f"_key:bigint,{_FIELDS}", [{"_key": key, **one} for key, one in keyed.items()])
        rows = rows.withColumn("_key", F.xxhash64("_path")).join(F.broadcast(table), "_key").drop("_path", "_key")
    if not positions:
        return rows.drop("_start")
    part = F.col("_start") + F.col("_block")
    position = F.struct(F.lit("").alias("place"), part.alias("part"), F.col("_number").alias("number"))
    return rows.withColumn("_position", position).drop("_start", "_block", "_number")


def _starts(files: Sequence[ToRead]) -> dict[Path, int]:
    """Where each file would begin if all of them were one, in the order of their names."""
    found, start = {}, 0
    for path, size in sorted({(file.path, file.size) for file in files}, key=lambda one: str(one[0])):
        found[path] = start
        start += size + 1
    return found


def _places(positions: bool) -> list[Column]:
    """Where a record comes from, said right at the scan: later the order of a file's lines is nobody's business."""
    from pyspark.sql import functions as F

    path = F.col("_metadata.file_path").alias("_path")
    if not positions:
        return [path]
    start = F.col("_metadata.file_block_start").cast("bigint").alias("_block")
    return [path, start, F.monotonically_increasing_id().alias("_number")]


def hash_of(text: str) -> int:
    """What Spark's xxhash64 gives: a number is found much sooner in a join than a long text."""
    import xxhash

    return int.from_bytes(xxhash.xxh64_digest(text.encode(), seed=42), "big", signed=True)


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


def _read_json(spark: SparkSession, source: FileSource, files: Sequence[ToRead], positions: bool) -> DataFrame:
    """Each file by the quickest road that gives the same records; a file takes the same road every time."""
    from functools import reduce

    columns = source.columns
    wide = columns if source.rounding else widened(columns)
    roads = [
        (_fast, columns, [file for file in files if file.plain and file.fits]),
        (_fast, wide, [file for file in files if file.plain and not file.fits]),
        (_careful, wide, [file for file in files if not file.plain]),
    ]
    said = _places(positions)
    frames = [
        narrow(road(spark, read, [literal(file.path) for file in some], said), columns, read, misfit(columns, read))
        for road, read, some in roads
        if some
    ]
    return reduce(lambda one, two: one.unionByName(two), frames)


def _fast(spark: SparkSession, columns: dict[str, str], paths: list[str], said: list[Column]) -> DataFrame:
    reader = spark.read.schema(f"{ddl(columns)}, {RAW} string")
    rows = reader.options(**STRICT, lineSep="\n").json(paths)
    return rows.select("*", *said)


def _careful(spark: SparkSession, columns: dict[str, str], paths: list[str], said: list[Column]) -> DataFrame:
    from pyspark.sql import functions as F

    lines = spark.read.option("lineSep", "\n").text(paths).select("value", *said)
    lines = lines.where(F.col("value").rlike("[^ \\t\\r]")).withColumn("value", F.ltrim("value", F.lit("\ufeff")))
    return parsed(lines, columns)
