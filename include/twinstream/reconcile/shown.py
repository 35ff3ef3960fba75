"""A differing row on its way out of Spark: every value as text, with a hash that says whether two are the same."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, NamedTuple

from twinstream.reconcile.canonical import hashable, text
from twinstream.reconcile.hashes import SEED, cells
from twinstream.reconcile.result import Difference
from twinstream.reconcile.shape import Shape

if TYPE_CHECKING:
    from pyspark.sql import Column, Row
    from pyspark.sql.types import DataType

LONGEST = 1000
"""Characters of a value that are shown."""


class Shown(NamedTuple):
    """A value: text for people, a hash to tell it from others; null has neither."""

    text: str | None
    hash: int | None


class Differing(NamedTuple):
    """One difference: how often it is there, the rows of its key on either side, and the row of either side."""

    kind: Difference
    key_hash: int
    rows: int
    stream_rows: int
    batch_rows: int
    stream: Mapping[str, Shown] | None
    batch: Mapping[str, Shown] | None


def show(shape: Shape, side: str = "") -> list[Column]:
    """Columns of a comparable row, or of the row in a column of that name, as text and hash."""
    from pyspark.sql import functions as F

    shown = []
    for name, place in cells(shape).items():
        type_ = shape.columns[name]
        value = F.col(f"{side}.{place}") if side else F.col(place)
        words = text(value, type_)
        if type_.simpleString() not in ("bigint", "double", "boolean", "date", "timestamp", "timestamp_ntz"):
            cut = F.concat(F.substring(words, 1, LONGEST), F.lit("…"))
            words = F.when(F.length(words) > LONGEST, cut).otherwise(words)
        hashed = F.when(value.isNotNull(), F.xxhash64(F.lit(SEED), hashable(value, type_)))
        shown.append(F.struct(words.alias("text"), hashed.alias("hash")).alias(place))
    return shown


def cells_of(row: Row, shape: Shape) -> dict[str, Shown]:
    """The values of a row by the names of their columns."""
    return {name: Shown(*row[place]) for name, place in cells(shape).items()}


def close(stream: Shown, batch: Shown, type_: DataType, limit: Decimal | None) -> bool:
    """Whether two values count as equal."""
    if stream.hash == batch.hash:
        return True
    if limit is None or stream.text is None or batch.text is None:
        return False
    if type_.simpleString() == "double":
        return abs(float(stream.text) - float(batch.text)) <= float(limit)
    return abs(minus(stream.text, batch.text)) <= limit


def minus(one: str, other: str) -> Decimal:
    """The exact difference of two numbers."""
    with localcontext() as context:
        context.prec = 80
        return Decimal(one) - Decimal(other)
