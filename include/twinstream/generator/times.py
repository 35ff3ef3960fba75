"""Event times: which column carries them, in which unit, and how they grow over the stream."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from random import Random

from twinstream.errors import DefinitionError
from twinstream.generator.kinds import INTEGER_BITS, Kind

SECOND = 1_000_000
JITTER = 5 * SECOND
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class TimeColumn:
    """The column behind the definition's event time; integers count seconds, milli- or microseconds since 1970."""

    name: str
    kind: Kind
    unit: int = SECOND

    def value(self, micros: int) -> object:
        """A moment as the column's Python value."""
        if self.kind.name in INTEGER_BITS:
            return min(micros // self.unit, 2 ** INTEGER_BITS[self.kind.name] - 1)
        moment = from_micros(micros)
        if self.kind.name == "date":
            return moment.date()
        if self.kind.name == "timestamp_ntz":
            return moment.replace(tzinfo=None)
        return iso(micros) if self.kind.name == "string" else moment


def find_time_column(event_time: str, kinds: Mapping[str, Kind]) -> TimeColumn:
    """The event time is a column, or an expression over exactly one: that one is given the growing times."""
    by_name = {name.lower(): name for name in kinds}
    used = {by_name[word] for word in re.findall(r"\w+", event_time.lower()) if word in by_name}
    if len(used) == 1:
        name = used.pop()
        if kinds[name].name in {"timestamp", "timestamp_ntz", "date", "string", "int", "bigint"}:
            lowered = event_time.lower()
            unit = 1 if "micro" in lowered else 1_000 if "milli" in lowered or "1000" in lowered else SECOND
            return TimeColumn(name, kinds[name], unit)
    raise DefinitionError(
        f"The generator cannot tell which column carries the event time {event_time!r}.",
        next_step="Use a timestamp column as event time, or write events of your own.",
    )


class Clock:
    """Times that grow by 1/rate a record, each up to five seconds off: events never arrive quite in order."""

    def __init__(self, start: datetime, rate: float, rng: Random) -> None:
        self._start = to_micros(start)
        self._step = SECOND / rate
        self._rng = rng

    def nominal(self, index: int) -> int:
        """Where record `index` stands on the clock, before jitter."""
        return self._start + int(index * self._step)

    def take(self, first: int, count: int) -> list[int]:
        start, step, random = self._start, self._step, self._rng.random
        return [start + int(index * step) + int(random() * JITTER) for index in range(first, first + count)]


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970, exactly; a moment without a zone is UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def from_micros(micros: int) -> datetime:
    """The moment of `to_micros`, in UTC."""
    return _EPOCH + timedelta(microseconds=micros)


def iso(micros: int) -> str:
    """ISO-8601 in UTC with microseconds."""
    seconds, rest = divmod(micros, SECOND)
    return f"{iso_second(seconds)}.{rest:06d}Z"


def iso_second(seconds: int) -> str:
    """A whole second since 1970 as ISO-8601, without a zone."""
    return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")


def day_of(micros: int) -> date:
    """The UTC date, which names the folder of a nested layout."""
    return from_micros(micros).date()
