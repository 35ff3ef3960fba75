"""A few rows as a Spark table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def small_table(spark: SparkSession, fields: str, rows: Sequence[Mapping[str, object]]) -> DataFrame:
    """Rows as a plan that Spark evaluates by itself: no upload, no job, the same on Connect; values are never SQL."""
    from pyspark.sql import functions as F

    text = json.dumps([dict(row) for row in rows], ensure_ascii=False)
    return spark.sql("select 1 as one").select(F.inline(F.from_json(F.lit(text), f"array<struct<{fields}>>")))


def looked_up(key: Column, fields: str, rows: Mapping[str, Mapping[str, object]]) -> Column:
    """The row of this key as a struct: for a handful of rows cheaper than a join, which is a job of its own.

    The rows are one value in the query, and none of the text that Spark compiles: it is the same for all of them.
    """
    from pyspark.sql import functions as F

    text = json.dumps({name: dict(row) for name, row in rows.items()}, ensure_ascii=False)
    return F.from_json(F.lit(text), f"map<string,struct<{fields}>>")[key]
