"""One form for values that are the same: what is grouped, compared and hashed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

_BITS = 31


def comparable(value: Column, have: DataType, want: DataType) -> Column:
    """The value in the common type, in a form that can be grouped and put in order: maps become sorted entries.

    NaN and -0.0 need nothing: Spark's grouping, `<=>` and hashes take them for one NaN and for zero.
    """
    cast = value if have.simpleString() == want.simpleString() else value.cast(want)
    return _plain(cast, want)


def hashable(value: Column, type_: DataType) -> Column:
    """A comparable value in a form whose hash knows where nulls are and where an array ends.

    Spark's hashes skip nulls and run through nested values as if there were no borders, so that [1, null] and [null, 1]
    would be one, or [1], [2] and [1, 2], [].
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(type_, MapType):
        return hashable(value, entries_type(type_))
    if isinstance(type_, ArrayType):
        element = type_.elementType
        items = F.transform(value, lambda item: F.struct(item.isNull(), hashable(item, element)))
        return F.struct(F.size(value), items)
    if isinstance(type_, StructType):
        fields = [(value.getField(field.name), field.dataType) for field in type_.fields]
        flags = nulls([field for field, _ in fields])
        return F.struct(*flags, *(hashable(field, kind) for field, kind in fields))
    return value


def is_nested(type_: DataType) -> bool:
    """Whether `hashable` makes something else of such a value."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    return isinstance(type_, ArrayType | MapType | StructType)


def nulls(values: Sequence[Column]) -> list[Column]:
    """Bitmaps of which values are null, 31 to a number."""
    from pyspark.sql import functions as F

    maps = []
    for start in range(0, max(len(values), 1), _BITS):
        bits = F.lit(0)
        for place, value in enumerate(values[start : start + _BITS]):
            bits = bits.bitwiseOR(F.shiftleft(value.isNull().cast("int"), place))
        maps.append(bits)
    return maps


def text(value: Column, type_: DataType) -> Column:
    """A comparable value as people read it."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import BinaryType, MapType

    if isinstance(type_, BinaryType):
        return F.hex(value)
    if isinstance(type_, MapType):
        return F.map_from_entries(value).cast("string")
    return value.cast("string")


def entries_type(type_: DataType) -> DataType:
    """The type of a map's sorted entries."""
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    assert isinstance(type_, MapType)
    fields = [StructField("key", type_.keyType), StructField("value", type_.valueType)]
    return ArrayType(StructType(fields))


def _plain(value: Column, type_: DataType) -> Column:
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType

    if isinstance(type_, MapType):
        kinds = (type_.keyType, type_.valueType)
        entries = F.transform(
            F.map_entries(value),
            lambda entry: F.struct(
                _plain(entry.getField("key"), kinds[0]).alias("key"),
                _plain(entry.getField("value"), kinds[1]).alias("value"),
            ),
        )
        return F.array_sort(entries)
    if isinstance(type_, ArrayType) and not _is_plain(type_):
        element = type_.elementType
        return F.transform(value, lambda item: _plain(item, element))
    if isinstance(type_, StructType) and not _is_plain(type_):
        fields = [_plain(value.getField(field.name), field.dataType).alias(field.name) for field in type_.fields]
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(type_, StringType) and not _is_plain(type_):
        return F.collate(value, "UTF8_BINARY")
    return value


def _is_plain(type_: DataType) -> bool:
    """Whether values need no other form: no maps inside, and no strings that a collation takes for equal."""
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType

    if isinstance(type_, ArrayType):
        return _is_plain(type_.elementType)
    if isinstance(type_, StructType):
        return all(_is_plain(field.dataType) for field in type_.fields)
    if isinstance(type_, StringType):
        return type_.isUTF8BinaryCollation()
    return not isinstance(type_, MapType)
