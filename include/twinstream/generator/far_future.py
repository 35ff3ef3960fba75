"""How far ahead an event lies that must not move any watermark."""

from __future__ import annotations

_CENTURY = 36_525 * 86_400 * 1_000_000


def far_future(micros: int) -> int:
    """A century later: ahead of every clock whatever `start` was, and a function of the seed and `start` alone."""
    return micros + _CENTURY
