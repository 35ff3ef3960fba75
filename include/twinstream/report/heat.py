"""The buckets as a strip: where along the hash the differing rows lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

LEVELS = 5


@dataclass(frozen=True)
class Patch:
    """Neighbouring cells of one warmth."""

    start: int
    width: int
    level: int


@dataclass(frozen=True)
class Strip:
    """The strip, and the number of rows in its warmest cell."""

    cells: int
    patches: tuple[Patch, ...]
    hottest: int


def strip(heat: Sequence[int]) -> Strip:
    """Levels by the logarithm of the rows: one differing row among thousands elsewhere must still be seen."""
    hottest = max(heat, default=0)
    patches: list[Patch] = []
    for place, rows in enumerate(heat):
        if rows <= 0:
            continue
        level = level_of(rows, hottest)
        last = patches[-1] if patches else None
        if last and last.level == level and last.start + last.width == place:
            patches[-1] = Patch(last.start, last.width + 1, level)
        else:
            patches.append(Patch(place, 1, level))
    return Strip(len(heat), tuple(patches), hottest)


def level_of(rows: int, hottest: int) -> int:
    """1 to LEVELS; 0 only for no rows."""
    if rows <= 0:
        return 0
    if hottest <= 1:
        return LEVELS
    return 1 + round((LEVELS - 1) * math.log(rows) / math.log(hottest))
