"""Records that no JSON source may let through: each way of being broken is one method."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from random import Random

from twinstream.generator.far_future import far_future
from twinstream.generator.forms import Cell, Row
from twinstream.generator.kinds import INTEGER_BITS, Kind
from twinstream.generator.times import TimeColumn

Way = Callable[[dict[str, str], int, Random], str]

NOISE = [
    "GET /health 200 12ms",
    "<html><body>502 Bad Gateway</body></html>",
    "### log rotated ###",
    "Traceback (most recent call last):",
    "id;page;amount;at",
    "undefined",
]


class JsonPoison:
    """Picks, for every poisoned record, one way that the columns allow.

    Only values that every reader must refuse are written: a number in a text column, say, is no poison.
    """

    def __init__(
        self,
        kinds: Mapping[str, Kind],
        record_id: str,
        time: TimeColumn,
        time_cells: Callable[[Sequence[int]], list[Cell]],
    ) -> None:
        self._names = list(kinds)
        self._record_id = record_id
        self._time = time
        self._time_cells = time_cells
        self._decimals = [(name, kind) for name, kind in kinds.items() if kind.name == "decimal"]
        self._bounded = [(name, kind) for name, kind in kinds.items() if kind.name in {"decimal", *INTEGER_BITS}]
        self._typed = [name for name, kind in kinds.items() if kind.numeric or kind.name in {"boolean", "timestamp"}]
        self._numbers = [name for name, kind in kinds.items() if kind.numeric]
        self._ways = self._possible()

    def spoil(self, row: Row, micros: int, rng: Random) -> str:
        members = {name: str(cell) for name, cell in zip(self._names, row, strict=True)}
        return rng.choice(self._ways)(members, micros, rng)

    def _possible(self) -> list[Way]:
        ways: list[Way] = [self._truncated, self._not_json, self._no_record_id, self._no_event_time, self._far_future]
        if self._decimals:
            ways.append(self._too_much_scale)
        if self._bounded:
            ways.append(self._overflow)
        if self._typed:
            ways.append(self._wrong_type)
        return ways

    def _truncated(self, members: dict[str, str], micros: int, rng: Random) -> str:
        line = _line(members)
        return line[: rng.randrange(1, len(line))]

    def _not_json(self, members: dict[str, str], micros: int, rng: Random) -> str:
        return rng.choice(NOISE)

    def _no_record_id(self, members: dict[str, str], micros: int, rng: Random) -> str:
        return _without(members, self._record_id, rng)

    def _no_event_time(self, members: dict[str, str], micros: int, rng: Random) -> str:
        return _without(members, self._time.name, rng)

    def _far_future(self, members: dict[str, str], micros: int, rng: Random) -> str:
        return _line({**members, self._time.name: str(self._time_cells([far_future(micros)])[0])})

    def _too_much_scale(self, members: dict[str, str], micros: int, rng: Random) -> str:
        """1.005 where two digits fit: a reader that rounds would change the sum without a word."""
        name, kind = rng.choice(self._decimals)
        whole = 0 if kind.precision == kind.scale else rng.randrange(10)
        fraction = rng.randrange(10**kind.scale)
        digits = f"{fraction:0{kind.scale}d}" if kind.scale else ""
        return _line({**members, name: f"{whole}.{digits}5"})

    def _overflow(self, members: dict[str, str], micros: int, rng: Random) -> str:
        name, kind = rng.choice(self._bounded)
        # One bit more than signed: Spark's JSON reader takes 128 to 255 for a tinyint and wraps them.
        bound = 10 ** (kind.precision - kind.scale) if kind.name == "decimal" else 2 ** (INTEGER_BITS[kind.name] + 1)
        return _line({**members, name: str(bound + rng.randrange(1_000))})

    def _wrong_type(self, members: dict[str, str], micros: int, rng: Random) -> str:
        name = rng.choice(self._typed)
        wrong = ['{"value":1}', "[1]", '"n/a"']
        if name in self._numbers:
            wrong.append("true")
        return _line({**members, name: rng.choice(wrong)})


def _line(members: Mapping[str, str]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in members.items()) + "}"


def _without(members: dict[str, str], name: str, rng: Random) -> str:
    """Null or not there at all: both mean that it is missing."""
    if rng.randrange(2):
        return _line({**members, name: "null"})
    return _line({other: text for other, text in members.items() if other != name})
