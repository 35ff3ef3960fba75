"""Failpoints: a process can be told to die or to stop just before or just after any durable step.

Every durable step of the engine stands in `with durable("name"):`, which passes the failpoints `name:before` and
`name:after`. `TWINSTREAM_FAILPOINT=name:after` kills the process there (SIGKILL, so that nothing can tidy up),
`name:after@3` at the third pass, `name:after!stop` stops it (SIGSTOP) and `name:after!error` raises.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "TWINSTREAM_FAILPOINT"
_passes: Counter[str] = Counter()


class Failed(Exception):
    """Raised by a failpoint whose action is `error`."""


def hit(name: str) -> None:
    """Passes the failpoint `name`; does nothing unless the environment asks for a failure right here."""
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return
    target, _, action = wanted.partition("!")
    point, _, nth = target.partition("@")
    if point != name:
        return
    _passes[name] += 1
    if _passes[name] != int(nth or 1):
        return
    if action == "error":
        raise Failed(name)
    os.kill(os.getpid(), signal.SIGSTOP if action == "stop" else signal.SIGKILL)


@contextmanager
def durable(name: str) -> Iterator[None]:
    """Marks one durable step: a crash can fall before it or after it, and the protocol must survive both."""
    hit(f"{name}:before")
    yield
    hit(f"{name}:after")
