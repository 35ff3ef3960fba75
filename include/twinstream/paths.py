"""Paths as Spark's readers take them: they would see patterns where a name has brackets or stars in it."""

from __future__ import annotations

import re
from pathlib import Path

_PATTERN = re.compile(r"([\\*?\[\]{}])")


def literal(path: Path) -> str:
    """The path of exactly this file."""
    return _PATTERN.sub(r"\\\1", str(path))
