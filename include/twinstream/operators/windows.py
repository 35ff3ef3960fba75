"""Event-time windows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinstream.errors import DefinitionError

if TYPE_CHECKING:
    from pyspark.sql import Column

_SECOND = 1_000_000
_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3_600 * _SECOND,
    "day": 86_400 * _SECOND,
    "week": 604_800 * _SECOND,
}
_PART = re.compile(r"(\d+)\s*([a-z]+)")
_WHOLE = re.compile(r"(?:\d+\s*[a-z]+\s*)+")
_LONGEST = 36_525 * _UNITS["day"]


@dataclass(frozen=True)
class Fixed:
    """Windows of one length, side by side, counted from 1970-01-01 00:00 UTC; the end does not belong to the window."""

    micros: int

    def __post_init__(self) -> None:
        if isinstance(self.micros, bool) or not isinstance(self.micros, int) or not 0 < self.micros <= _LONGEST:
            raise DefinitionError(
                f"A window of {self.micros!r} microseconds is not possible.",
                next_step='Give a length between one microsecond and 36525 days, such as fixed("1 minute").',
            )

    @property
    def duration(self) -> str:
        """The length as Spark's `window` function takes it."""
        return f"{self.micros} microseconds"

    def start(self, at: Column) -> Column:
        """Start of the window that holds `at`, by integer arithmetic that also floors before 1970."""
        from pyspark.sql import functions as F

        micros = F.unix_micros(at)
        return F.timestamp_micros(micros - F.pmod(micros, F.lit(self.micros).cast("bigint")))

    def end(self, start: Column) -> Column:
        """End of the window that begins at `start`."""
        from pyspark.sql import functions as F

        return F.timestamp_micros(F.unix_micros(start) + F.lit(self.micros).cast("bigint"))

    def canonical(self) -> dict[str, object]:
        """What of the window changes results."""
        return {"window": "fixed", "micros": self.micros}


def fixed(length: str) -> Fixed:
    """Windows of one length: `fixed("1 minute")`, `fixed("90 seconds")`, `fixed("1 hour 30 minutes")`."""
    return Fixed(duration_micros(length))


def duration_micros(text: str) -> int:
    """Microseconds of a length such as "10 minutes"; months and years are refused, for they have no fixed length."""
    lowered = text.strip().lower() if isinstance(text, str) else ""
    if not _WHOLE.fullmatch(lowered):
        raise DefinitionError(
            f"{text!r} is not a length of time.", next_step='Write a number and a unit, such as "10 minutes".'
        )
    return sum(int(number) * _unit(word, text) for number, word in _PART.findall(lowered))


def _unit(word: str, text: str) -> int:
    micros = _UNITS.get(word) or _UNITS.get(word.removesuffix("s"))
    if micros is None:
        raise DefinitionError(
            f"{text!r} has the unit {word!r}, which is not a fixed length of time.",
            next_step=f"Use one of: {', '.join(_UNITS)}.",
        )
    return micros
