"""One engine per command, closed at its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from twinstream.settings import Settings

if TYPE_CHECKING:
    from twinstream.engine import Engine


@contextmanager
def engine() -> Iterator[Engine]:
    """An engine from the environment's settings."""
    from twinstream.engine import Engine
    from twinstream.runtime.explain import in_our_words

    opened = Engine(Settings.from_env())
    try:
        with in_our_words():
            yield opened
    finally:
        opened.close()
