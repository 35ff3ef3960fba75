"""The accounting as a picture: one stream of records read that parts into its classes."""

from __future__ import annotations

from dataclasses import dataclass

from twinstream.report.words import books
from twinstream.transaction import Accounting

ROW = 44
"""The least height of a class: its label beside the picture has two lines."""
WIDTH = 100
_STEM = 6
_THICKEST = 180
_GAP = 10
_THINNEST = 1.5


@dataclass(frozen=True)
class Band:
    """One class: its share, and the outline of its part of the stream."""

    name: str
    word: str
    count: int
    share: str
    height: float
    """Of its row, which its label shares."""
    path: str
    """Empty where the class has no records."""


@dataclass(frozen=True)
class Flow:
    """All classes under each other; the picture is stretched in width, never in height."""

    read: int
    bands: tuple[Band, ...]
    height: float
    stem_top: float
    stem_height: float


def flow(accounting: Accounting) -> Flow:
    """Thickness in proportion to records, but no class that has any is thinner than can be seen."""
    found = books(accounting)
    read = accounting.read.count
    thicks = [max(_THINNEST, _THICKEST * many / read) if many else 0.0 for _, _, many in found]
    heights = [max(ROW, thick + _GAP) for thick in thicks]
    stem, height = sum(thicks), sum(heights)
    top = at = (height - stem) / 2
    row = 0.0
    bands = []
    for (name, word, many), thick, tall in zip(found, thicks, heights, strict=True):
        path = _outline(at, row + (tall - thick) / 2, thick) if many else ""
        bands.append(Band(name, word, many, _share(many, read), round(tall, 2), path))
        at += thick
        row += tall
    return Flow(read, tuple(bands), round(height, 2), round(top, 2), round(stem, 2))


def _outline(top: float, end: float, thick: float) -> str:
    """From `top` on the stem at the left, in one bow, to `end` at the right."""
    left, right, bend = _STEM, WIDTH, (_STEM + WIDTH) / 2
    return (
        f"M{left} {top:.2f}C{bend} {top:.2f} {bend} {end:.2f} {right} {end:.2f}v{thick:.2f}"
        f"C{bend} {end + thick:.2f} {bend} {top + thick:.2f} {left} {top + thick:.2f}Z"
    )


def _share(many: int, read: int) -> str:
    if not many:
        return ""
    share = 100 * many / read
    if share < 0.1:
        return "< 0.1 %"
    return "100 %" if many == read else f"{min(share, 99.9):.1f} %"
