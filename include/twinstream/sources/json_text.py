"""Text that should be one JSON object, parsed strictly: what is more, less or something else is not a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RAW = "_raw"
STRICT = {"columnNameOfCorruptRecord": RAW, "mode": "PERMISSIVE", "allowSingleQuotes": "false"}
_FLAT = "^[ \\t\\r\\n]*\\{[^}]*\\}[ \\t\\r\\n]*\\z"
"""Ends where its first brace is closed: it needs no second look to be known as one object at most."""


def ddl(columns: Mapping[str, str]) -> str:
    """Columns as Spark's schemas write them."""
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())


def parsed(texts: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """The columns in place of `value`; `_raw` is the text where it is not one object of these types."""
    from pyspark.sql import functions as F

    value = F.col("value")
    rows = texts.select("*", F.inline(F.array(F.from_json("value", f"{ddl(columns)}, {RAW} string", STRICT))))
    is_one = F.coalesce(F.json_array_length(F.concat(F.lit("["), value, F.lit("]"))), F.lit(0)) == 1
    one_object = value.rlike(_FLAT) | (value.rlike("^[ \\t\\r\\n]*\\{") & is_one)
    return rows.withColumn(RAW, F.when(~one_object, value).otherwise(F.col(RAW))).drop("value")
