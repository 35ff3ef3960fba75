"""What the demo says: headings, and lines with the time since it began."""

from __future__ import annotations

import sys
import time

_began = time.monotonic()
_bold, _plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")


def heading(text: str) -> None:
    """A part of the story."""
    print(f"\n{_bold}{text}{_plain}", flush=True)


def say(text: str) -> None:
    """A line of it."""
    print(f"  {seconds():5.0f} s  {text}", flush=True)


def seconds() -> float:
    """Since the demo began."""
    return time.monotonic() - _began
