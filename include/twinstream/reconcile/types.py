"""Types that hold the same values: int in bigint, a decimal in a wider one, float in double, nested ones too."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, DecimalType

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}


def widest(left: DataType, right: DataType) -> DataType | None:
    """The one type in which values of both are compared; None where there is none that keeps every value as it is.

    All integers become bigint and all floating-point numbers double, so that a shape does not depend on who asks.
    """
    from pyspark.sql.types import ArrayType, DecimalType, DoubleType, FloatType, LongType, MapType, StructType

    names = (left.simpleString(), right.simpleString())
    if all(name in _DIGITS for name in names):
        return LongType()
    if all(name in _DIGITS or isinstance(type_, DecimalType) for name, type_ in zip(names, (left, right), strict=True)):
        return _widest_decimal(_as_decimal(left), _as_decimal(right))
    if all(isinstance(type_, FloatType | DoubleType) for type_ in (left, right)):
        return DoubleType()
    if isinstance(left, ArrayType) and isinstance(right, ArrayType):
        element = widest(left.elementType, right.elementType)
        return ArrayType(element) if element else None
    if isinstance(left, MapType) and isinstance(right, MapType):
        key, value = widest(left.keyType, right.keyType), widest(left.valueType, right.valueType)
        return MapType(key, value) if key and value else None
    if isinstance(left, StructType) and isinstance(right, StructType):
        return _widest_struct(left, right)
    return left if names[0] == names[1] else None


def comparable_type(type_: DataType) -> bool:
    """Whether values of this type can be told apart, brought into an order and hashed."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(type_, ArrayType):
        return comparable_type(type_.elementType)
    if isinstance(type_, MapType):
        return comparable_type(type_.keyType) and comparable_type(type_.valueType)
    if isinstance(type_, StructType):
        return all(comparable_type(field.dataType) for field in type_.fields)
    name = type_.simpleString()
    return name not in ("variant", "interval", "void") and not name.startswith(("geometry", "geography"))


def _as_decimal(type_: DataType) -> DecimalType:
    from pyspark.sql.types import DecimalType

    return type_ if isinstance(type_, DecimalType) else DecimalType(_DIGITS[type_.simpleString()], 0)


def _widest_decimal(left: DecimalType, right: DecimalType) -> DataType | None:
    from pyspark.sql.types import DecimalType

    scale = max(left.scale, right.scale)
    digits = max(left.precision - left.scale, right.precision - right.scale) + scale
    return DecimalType(digits, scale) if digits <= 38 else None


def _widest_struct(left: DataType, right: DataType) -> DataType | None:
    from pyspark.sql.types import StructField, StructType

    assert isinstance(left, StructType)
    assert isinstance(right, StructType)
    if left.names != right.names:
        return None
    fields = []
    for one, other in zip(left.fields, right.fields, strict=True):
        common = widest(one.dataType, other.dataType)
        if common is None:
            return None
        fields.append(StructField(one.name, common))
    return StructType(fields)
