"""Signals that end a program: heard once, and never between starting a process and remembering it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Interrupts:
    """After the first signal no other is heard: the cleaning up that it causes is done whole."""

    def __init__(self) -> None:
        self.held = False
        self.heard = False
        self.raised = False

    def hear(self, _number: int, _frame: object) -> None:
        self.heard = True
        self.rise()

    def rise(self) -> None:
        if self.heard and not self.held and not self.raised:
            self.raised = True
            raise KeyboardInterrupt


_interrupts = _Interrupts()


def listen() -> None:
    """From now on each of the signals raises KeyboardInterrupt, the first time."""
    for number in SIGNALS:
        signal.signal(number, _interrupts.hear)


@contextmanager
def held() -> Iterator[None]:
    """What is done in this block is not interrupted: a signal waits for its end."""
    _interrupts.held = True
    try:
        yield
    finally:
        _interrupts.held = False
    _interrupts.rise()
