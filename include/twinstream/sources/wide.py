"""Numbers that do not fit their column are noticed, not rounded or wrapped: read wider, then narrowed and compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TINYINT = re.compile(r"\btinyint\b(?!:)")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def widened(columns: Mapping[str, str]) -> dict[str, str]:
    """The same columns with decimals as wide as they go: all whole digits kept, the rest of the 38 for the scale.

    A tinyint is read as int, because Spark's JSON reader takes 128 to 255 for one and makes it negative.
    """
    return {name: _TINYINT.sub("int", _DECIMAL.sub(_wider, kind)) for name, kind in columns.items()}


def smallest_scale(columns: Mapping[str, str]) -> int | None:
    """The smallest scale of all decimals; None where there are none, or where decimals are not all that is widened."""
    if any(_TINYINT.search(kind) for kind in columns.values()):
        return None
    return min((int(found[2]) for kind in columns.values() for found in _DECIMAL.finditer(kind)), default=None)


def misfit(columns: Mapping[str, str], wide: Mapping[str, str]) -> Column:
    """The name of the first column whose value changes when it is narrowed, or null."""
    from pyspark.sql import functions as F

    found = F.lit(None).cast("string")
    for name in reversed([name for name, kind in columns.items() if wide[name] != kind]):
        value = F.col(f"`{name}`")
        back = value.try_cast(columns[name]).try_cast(wide[name])
        found = F.when(~back.eqNullSafe(value), F.lit(name)).otherwise(found)
    return found


def narrow(rows: DataFrame, columns: Mapping[str, str], wide: Mapping[str, str], bad: Column) -> DataFrame:
    """The rows in the definition's types, with `_misfit`; a misfit's own text is kept in `_raw`."""
    from pyspark.sql import functions as F

    names = [name for name in columns if wide[name] != columns[name]]
    if not names:
        return rows.withColumn("_misfit", F.lit(None).cast("string"))
    shown = [_shown(name, wide[name]) if name in names else F.col(f"`{name}`") for name in columns]
    text = F.to_json(F.struct(*(column.alias(name) for name, column in zip(columns, shown, strict=True))))
    rows = rows.withColumn("_misfit", bad)
    rows = rows.withColumn(
        "_raw", F.when(F.col("_misfit").isNotNull(), F.coalesce("_raw", text)).otherwise(F.col("_raw"))
    )
    return rows.withColumns({name: F.col(f"`{name}`").try_cast(columns[name]) for name in names})


def _wider(match: re.Match[str]) -> str:
    precision, scale = int(match.group(1)), int(match.group(2))
    return f"decimal(38,{38 - (precision - scale)})"


def _shown(name: str, kind: str) -> Column:
    """A wide decimal as people write it, without the zeros that the width brings."""
    from pyspark.sql import functions as F

    if not kind.startswith("decimal"):
        return F.col(f"`{name}`")
    return F.regexp_replace(F.regexp_replace(F.col(f"`{name}`").cast("string"), "0+$", ""), "\\.$", "")
