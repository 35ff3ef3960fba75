"""Durations as people write them: '10 minutes', '1 hour', '500 milliseconds'."""

from __future__ import annotations

import re

from twinstream.errors import DefinitionError

_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_PATTERN = re.compile(r"\s*(\d+)\s*([a-z]+?)s?\s*$", re.IGNORECASE)


def parse_duration(text: str, what: str) -> int:
    """Microseconds; raises DefinitionError naming `what` if the text is not a duration."""
    match = _PATTERN.match(text) if isinstance(text, str) else None
    unit = _UNITS.get(match.group(2).lower()) if match else None
    if match is None or unit is None:
        raise DefinitionError(
            f"{what} is {text!r}, which is not a duration.",
            next_step="Write a whole number and a unit, for example '10 minutes' or '1 hour' (up to weeks).",
        )
    return int(match.group(1)) * unit
