"""Constants in a form that is the same in every process, for the definition's hash."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

Canonical = list[Any]

_PLAIN = (bool, int, float, complex, str, bytes, Decimal, Fraction)
_TIMES = (datetime.date, datetime.datetime, datetime.time)


def canonical_constant(value: object) -> Canonical | None:
    """A constant of a built-in kind that holds no others; None for everything else.

    Only the very types: a subclass may mean something else by the same value.
    """
    kind = type(value)
    if value is None or value is Ellipsis or value is NotImplemented:
        return ["constant", repr(value)]
    if kind in _PLAIN:
        return [kind.__name__, repr(value)]
    if isinstance(value, _TIMES) and kind in _TIMES:
        zone = getattr(value, "tzinfo", None)
        return [kind.__name__, value.isoformat(), str(zone or "")]
    if kind is datetime.timedelta and isinstance(value, datetime.timedelta):
        return ["timedelta", repr((value.days, value.seconds, value.microseconds))]
    if kind in (datetime.timezone, ZoneInfo):
        return [kind.__name__, str(value)]
    if kind is range:
        return ["range", repr(value)]
    if isinstance(value, re.Pattern):
        return ["pattern", repr(value.pattern), int(value.flags)]
    if kind.__module__ == "pyspark.sql.types" and hasattr(value, "json") and not isinstance(value, type):
        return ["type", value.json()]
    return None
