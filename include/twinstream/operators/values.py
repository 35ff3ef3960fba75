"""One form for values that Spark takes for equal: NaN of any bits, and -0.0, also inside arrays and structs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType


def canonical(value: Column, type_: DataType) -> Column:
    """`value` with one NaN and no negative zero; the very same column where the type holds no floating-point number."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, DoubleType, FloatType, StructType

    if not _has_floats(type_):
        return value
    if isinstance(type_, ArrayType):
        element = type_.elementType
        return F.transform(value, lambda item: canonical(item, element))
    if isinstance(type_, StructType):
        fields = [canonical(value.getField(field.name), field.dataType).alias(field.name) for field in type_.fields]
        return F.when(value.isNotNull(), F.struct(*fields))
    assert isinstance(type_, FloatType | DoubleType)
    return (
        F.when(F.isnan(value), F.lit(float("nan")).cast(type_))
        .when(value == F.lit(0.0).cast(type_), F.lit(0.0).cast(type_))
        .otherwise(value)
    )


def value_hash(value: Column, type_: DataType) -> Column:
    """A 64-bit hash of the canonical value, null for null: xxhash64 alone would give null the hash of nothing."""
    from pyspark.sql import functions as F

    return F.when(value.isNotNull(), F.xxhash64(canonical(value, type_)))


def _has_floats(type_: DataType) -> bool:
    from pyspark.sql.types import ArrayType, DoubleType, FloatType, StructType

    if isinstance(type_, ArrayType):
        return _has_floats(type_.elementType)
    if isinstance(type_, StructType):
        return any(_has_floats(field.dataType) for field in type_.fields)
    return isinstance(type_, FloatType | DoubleType)
