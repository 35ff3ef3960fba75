"""Snapshots of what people read; TWINSTREAM_REWRITE_SNAPSHOTS=1 writes them anew, to be looked at before committing."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "snapshots"


def assert_snapshot(name: str, text: str) -> None:
    file = FOLDER / name
    if os.environ.get("TWINSTREAM_REWRITE_SNAPSHOTS"):
        file.write_text(text, encoding="utf-8")
    assert file.is_file(), f"No snapshot {name}: set TWINSTREAM_REWRITE_SNAPSHOTS=1 and look at what it writes."
    assert text == file.read_text(encoding="utf-8")
