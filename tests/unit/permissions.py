"""Root may read and write everything, so tests of what may not be read are run without root's rights."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def without_rights(*closed: Path) -> Iterator[None]:
    """Takes all rights from the paths, and root's rights from this process, until the block ends."""
    modes = [(path, path.stat().st_mode) for path in closed]
    for path in closed[0].parents:
        if not path.stat().st_mode & 0o001:
            modes.append((path, path.stat().st_mode))
            path.chmod(path.stat().st_mode | 0o011)
    for path in closed:
        path.chmod(0o000)
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
        for path, mode in reversed(modes):
            path.chmod(mode & 0o7777)
