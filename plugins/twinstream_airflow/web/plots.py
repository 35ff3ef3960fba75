"""A series as an area that a page can draw: the picture is stretched in width, never in height."""

from __future__ import annotations

from dataclasses import dataclass

from twinstream.report.words import number
from twinstream_airflow.web.models import Point, Series
from twinstream_airflow.web.times import span

WIDTH = 1000
HEIGHT = 90


@dataclass(frozen=True)
class Bar:
    """Where one point is to be hovered, and what it then says."""

    x: float
    width: float
    says: str


@dataclass(frozen=True)
class Plot:
    """One series, drawn."""

    name: str
    label: str
    highest: str
    newest: str
    line: str
    area: str
    bars: tuple[Bar, ...]


def plot(series: Series) -> Plot:
    """The series with zero at the bottom and its highest value at the top; points without a value leave a gap."""
    known = [point.value for point in series.points if point.value is not None]
    highest = max(known, default=0.0)
    step = WIDTH / max(1, len(series.points))
    pieces: list[list[tuple[float, float]]] = [[]]
    for place, point in enumerate(series.points):
        if point.value is None:
            pieces.append([])
            continue
        top = round(HEIGHT - (HEIGHT - 4) * point.value / highest, 1) if highest else float(HEIGHT)
        pieces[-1] += [(round(place * step, 1), top), (round((place + 1) * step, 1), top)]
    drawn = [piece for piece in pieces if piece]
    return Plot(
        series.name,
        series.label,
        said(highest, series.unit) if known else "",
        said(known[-1], series.unit) if known else "no value yet",
        "".join(_path(piece) for piece in drawn),
        "".join(f"{_path(piece)}V{HEIGHT}H{piece[0][0]}Z" for piece in drawn),
        tuple(Bar(round(n * step, 1), round(step, 1), _tip(p, series.unit)) for n, p in enumerate(series.points)),
    )


def said(value: float, unit: str) -> str:
    """A value with its unit."""
    if unit == "s":
        return span(value)
    return f"{number(round(value)) if value >= 100 else f'{value:.3g}'}\u00a0{unit}"


def _tip(point: Point, unit: str) -> str:
    txids = f"txid {point.first}" if point.first == point.last else f"txids {point.first} to {point.last}"
    return f"{txids}: {said(point.value, unit) if point.value is not None else 'no value'}"


def _path(piece: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x} {y}" for x, y in piece)
