"""Modes compared as one page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from twinstream.modes.result import Compared, Measured
from twinstream.report.html import template
from twinstream.report.words import number

WIDTH = 1000
BAR = 26


@dataclass(frozen=True)
class Bar:
    """One mode's figure."""

    mode: str
    text: str
    width: float


@dataclass(frozen=True)
class Panel:
    """One question with a bar for each mode that has an answer."""

    title: str
    bars: tuple[Bar, ...]


_PANELS: tuple[tuple[str, Callable[[Measured], float | None], Callable[[float], str]], ...] = (
    ("Event to visible, half of the records (less is better)", lambda one: one.p50, lambda v: f"{v:.2f} s"),
    ("Event to visible, 99 % of the records (less is better)", lambda one: one.p99, lambda v: f"{v:.2f} s"),
    ("Records per second (more is better)", lambda one: one.records_per_second, lambda v: number(round(v))),
    ("CPU seconds per million records (less is better)", lambda one: one.cpu_per_million, lambda v: number(round(v))),
    ("From a kill to the next commit (less is better)", lambda one: one.recovery, lambda v: f"{v:.1f} s"),
)


def to_html(found: Compared) -> str:
    """The page."""
    return template("modes.html.jinja").render(found=found, panels=panels(found), width=WIDTH, bar=BAR)


def panels(found: Compared) -> list[Panel]:
    """A panel for each figure that was measured."""
    made = []
    for title, figure, text in _PANELS:
        values = [(one.mode, value) for one in found.modes if (value := figure(one)) is not None]
        highest = max((value for _, value in values), default=0.0) or 1.0
        bars = tuple(Bar(mode, text(value), round(WIDTH * value / highest, 1)) for mode, value in values)
        if bars:
            made.append(Panel(title, bars))
    return made
