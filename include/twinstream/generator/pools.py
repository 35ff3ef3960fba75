"""The values a column draws from, made once per run: drawing from a finished pool is what makes generating fast."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import accumulate
from random import Random

from twinstream.generator.kinds import INTEGER_BITS, Kind
from twinstream.generator.words import strings

NULL_SHARE = 0.005
POOL_SIZE = 2_000
COMPOSED_SIZE = 500

_SMALL_COUNT = {"quantity", "qty", "count", "pieces", "units"}


@dataclass(frozen=True)
class Pool:
    """Python values with cumulative weights, a small share of them null."""

    kind: Kind
    values: list[object]
    cumulative: list[float]


def make_pool(column: str, kind: Kind, rng: Random, start: datetime) -> Pool:
    """The pool of one column; timestamps and dates lie in the 30 days before `start`."""
    weighted = _weighted(column, kind, rng, start)
    total = sum(weight for _, weight in weighted)
    weighted.append((None, total * NULL_SHARE / (1 - NULL_SHARE)))
    return Pool(kind, [value for value, _ in weighted], list(accumulate(weight for _, weight in weighted)))


def _weighted(column: str, kind: Kind, rng: Random, start: datetime) -> list[tuple[object, float]]:
    match kind.name:
        case "string":
            return list(strings(column, rng))
        case "boolean":
            return [(True, 7), (False, 3)]
        case "array":
            return [(value, 1) for value in _arrays(column, kind, rng, start)]
        case "struct":
            return [(value, 1) for value in _structs(kind, rng, start)]
    if kind.name in INTEGER_BITS and _tokens(column) & _SMALL_COUNT:
        return [(0, 0.3), *((number, 10 / number) for number in range(1, 13))]
    return [(_number_or_time(kind, rng, start), 1) for _ in range(POOL_SIZE)]


def _arrays(column: str, kind: Kind, rng: Random, start: datetime) -> list[list[object]]:
    assert kind.element is not None
    elements = _weighted(column, kind.element, rng, start)
    return [_draw(elements, rng, rng.randrange(5)) for _ in range(COMPOSED_SIZE)]


def _structs(kind: Kind, rng: Random, start: datetime) -> list[dict[str, object]]:
    drawn = [_draw(_weighted(name, field, rng, start), rng, COMPOSED_SIZE) for name, field in kind.fields]
    names = [name for name, _ in kind.fields]
    return [dict(zip(names, values, strict=True)) for values in zip(*drawn, strict=True)]


def _draw(weighted: list[tuple[object, float]], rng: Random, count: int) -> list[object]:
    return rng.choices([value for value, _ in weighted], [weight for _, weight in weighted], k=count)


def _number_or_time(kind: Kind, rng: Random, start: datetime) -> object:
    match kind.name:
        case "decimal":
            return _amount(kind, rng)
        case "double":
            return rng.randrange(1_000_000) / 1_000
        case "float":
            return rng.randrange(100_000) / 4
        case "timestamp":
            return start - timedelta(microseconds=rng.randrange(30 * 86_400 * 10**6))
        case "timestamp_ntz":
            return start.replace(tzinfo=None) - timedelta(microseconds=rng.randrange(30 * 86_400 * 10**6))
        case "date":
            return (start - timedelta(days=rng.randrange(30))).date()
    return rng.randrange(min(2 ** INTEGER_BITS[kind.name], 1 + rng.randrange(1_000) * rng.randrange(1, 100)))


def _amount(kind: Kind, rng: Random) -> Decimal:
    """A price-like decimal: many small ones, a few large, never more digits than the column holds.

    Integers only: the same seed gives the same bytes on every platform, whatever its logarithms round to.
    """
    hundredths = 99 + rng.randrange(200) * rng.randrange(1, 100)
    units = hundredths * 10**kind.scale // 100 % 10**kind.precision
    return Decimal(units).scaleb(-kind.scale) if units.bit_length() < 90 else _wide(units, kind.scale)


def _wide(units: int, scale: int) -> Decimal:
    """Like scaleb, for numbers of more digits than the default decimal context keeps."""
    return Decimal((0, tuple(map(int, str(units))), -scale))


def _tokens(column: str) -> set[str]:
    return set(re.split(r"[^a-z0-9]+", column.lower()))
