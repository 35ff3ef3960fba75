"""Differences by txid over time, as stacked bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from twinstream.reconcile.result import Difference, TxidDifferences
from twinstream.report.words import when

HEIGHT = 160
WIDTH = 1000
_MARGIN = 20
_MOST_BARS = 100


@dataclass(frozen=True)
class Piece:
    """The part of a bar that one kind has."""

    kind: Difference
    top: float
    height: float


@dataclass(frozen=True)
class Bar:
    """One txid, or neighbours in time when there are too many of them."""

    x: float
    first: int
    last: int
    rows: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Plot:
    """All bars with their scale."""

    bars: tuple[Bar, ...]
    highest: int
    start: str
    end: str
    kinds: tuple[Difference, ...]


def plot(txids: Sequence[TxidDifferences]) -> Plot | None:
    """The plot, or None where no txid is named; bars stand where their batch stands in time."""
    named = sorted((one for one in txids if sum(one.counts.values())), key=lambda one: (one.batch_time, one.txid))
    if not named:
        return None
    start, end = named[0].batch_time, named[-1].batch_time
    groups: dict[int, list[TxidDifferences]] = {}
    for one in named:
        groups.setdefault(_place(one.batch_time, start, end), []).append(one)
    totals = {place: _total(group) for place, group in groups.items()}
    highest = max(sum(total.values()) for total in totals.values())
    bars = tuple(_bar(place, group, totals[place], highest) for place, group in groups.items())
    kinds = tuple(kind for kind in Difference if any(kind in total for total in totals.values()))
    return Plot(bars, highest, when(start), when(end), kinds)


def _place(at: int, start: int, end: int) -> int:
    if start == end:
        return _MOST_BARS // 2
    return (at - start) * _MOST_BARS // (end - start)


def _total(group: Sequence[TxidDifferences]) -> dict[Difference, int]:
    total = {kind: sum(one.counts.get(kind, 0) for one in group) for kind in Difference}
    return {kind: rows for kind, rows in total.items() if rows}


def _bar(place: int, group: Sequence[TxidDifferences], total: dict[Difference, int], highest: int) -> Bar:
    x = _MARGIN + place * (WIDTH - 2 * _MARGIN) / _MOST_BARS
    pieces = []
    bottom = float(HEIGHT)
    for kind, rows in total.items():
        height = HEIGHT * rows / highest
        pieces.append(Piece(kind, round(bottom - height, 2), round(height, 2)))
        bottom -= height
    numbers = [one.txid for one in group]
    return Bar(round(x, 2), min(numbers), max(numbers), sum(total.values()), tuple(pieces))
