"""Counting records in Spark so that nothing overflows: counts, halves of sums and XORs of record hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column

TALLY = ("_records", "_low", "_high", "_xor")
TALLY_COLUMNS = dict.fromkeys(TALLY, "bigint")


def of_records(counts: Column | None = None) -> list[Column]:
    """Tallies the `_hash` of the rows for which `counts` is true (of all rows if it is None)."""
    from pyspark.sql import functions as F

    low = F.col("_hash").bitwiseAND(F.lit(0xFFFFFFFF).cast("bigint"))
    high = F.shiftright("_hash", 32)
    values = [F.lit(1), low, high, F.col("_hash")]
    if counts is not None:
        values = [F.when(counts, value) for value in values]
    tallied = [F.count(values[0]), F.sum(values[1]), F.sum(values[2]), F.bit_xor(values[3])]
    return [column.alias(name) for column, name in zip(tallied, TALLY, strict=True)]


def row_digest(columns: Sequence[tuple[str, str]]) -> Column:
    """64 bits over the values of a stored row; nulls are mixed in by position."""
    from pyspark.sql import functions as F

    nulls = F.concat(*(F.when(F.col(f"`{name}`").isNull(), F.lit("0")).otherwise(F.lit("1")) for name, _ in columns))
    values = [F.to_json(F.struct(f"`{name}`")) if "map<" in kind else F.col(f"`{name}`") for name, kind in columns]
    return F.xxhash64(nulls, *values)
