"""One engine per command, closed at its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from twinstream.engine import Engine
from twinstream.settings import Settings


@contextmanager
def engine() -> Iterator[Engine]:
    """An engine from the environment's settings."""
    opened = Engine(Settings.from_env())
    try:
        yield opened
    finally:
        opened.close()
