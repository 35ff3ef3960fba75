"""Spans of time as people say them; moments are told by the browser, in the reader's zone."""

from __future__ import annotations

_STEPS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def span(seconds: float | None) -> str:
    """A span in its two largest units."""
    if seconds is None:
        return "–"
    if seconds < 10:
        return f"{seconds:.1f}\u00a0s"
    left = round(seconds)
    if left < 60:
        return f"{left}\u00a0s"
    parts = []
    for size, unit in _STEPS:
        if left >= size:
            parts.append(f"{left // size}\u00a0{unit}")
            left %= size
    return " ".join(parts[:2])


def between(start: int | None, end: int | None) -> float | None:
    """Seconds between two moments of the ledger."""
    return None if start is None or end is None else max(0, end - start) / 1_000_000
