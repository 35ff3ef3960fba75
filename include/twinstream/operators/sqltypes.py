"""What the checks need to know of Spark's simple type strings, without Spark."""

from __future__ import annotations

import re

INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
FLOATS = frozenset({"float", "double"})
MAX_SUMMED_DIGITS = 28
"""Digits of the widest decimal that is summed: ten more are left, so no sum of fewer than 10^10 rows overflows."""

_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_UNORDERED = re.compile(r"(?:^|[:<,])\s*(map<|(?:variant|void|interval|geometry|geography)(?![\w :]))")
_COLLATED = re.compile(r"\bstring collate (\w+)", re.IGNORECASE)


def decimal_parts(type_: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal type."""
    match = _DECIMAL.fullmatch(type_)
    return (int(match[1]), int(match[2])) if match else None


def summed_scale(type_: str) -> int:
    """Digits after the point that a sum over this type keeps."""
    parts = decimal_parts(type_)
    return parts[1] if parts else 0


def sum_type(type_: str) -> str:
    """The one type of every sum over this type, on the way and at the end: re-summing must not widen it."""
    return f"decimal(38,{summed_scale(type_)})"


def summand_type(type_: str) -> str:
    """The widest type that values of this type are summed from."""
    return f"decimal({MAX_SUMMED_DIGITS},{summed_scale(type_)})"


def avg_type(type_: str) -> str:
    """The type of an average: four digits more than the values have, as Spark's own."""
    return f"decimal(38,{summed_scale(type_) + 4})"


def unordered_part(type_: str) -> str | None:
    """The part of a type that has no order or equality of its own, such as `map`, if there is one."""
    match = _UNORDERED.search(type_)
    return match[1].rstrip("<") if match else None


def collation(type_: str) -> str | None:
    """The collation of a string type other than the bytewise one, under which unlike strings are equal."""
    names = [name for name in _COLLATED.findall(type_) if name.upper() != "UTF8_BINARY"]
    return names[0] if names else None


def nested(type_: str) -> bool:
    """Whether the type is made of other types."""
    return type_.startswith(("array<", "map<", "struct<"))
