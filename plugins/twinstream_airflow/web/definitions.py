"""The definitions beside the ledger: read again only when a file in their folder has changed."""

from __future__ import annotations

import threading
from pathlib import Path

from twinstream.catalog import Catalog, load_catalog
from twinstream.errors import TwinstreamError

_lock = threading.Lock()
_read: dict[Path, tuple[tuple[tuple[str, int, int], ...], Catalog]] = {}


def definitions(folder: Path) -> Catalog:
    """What the folder holds; nothing where it is not on this machine, as the ledger knows what was run."""
    with _lock:
        now = _looks(folder)
        before = _read.get(folder)
        if before is not None and before[0] == now:
            return before[1]
        try:
            found = load_catalog(folder)
        except TwinstreamError:
            found = Catalog(folder, {}, ())
        _read[folder] = (now, found)
        return found


def _looks(folder: Path) -> tuple[tuple[str, int, int], ...]:
    try:
        files = sorted(folder.glob("*.py"))
        return tuple((file.name, (seen := file.stat()).st_mtime_ns, seen.st_size) for file in files)
    except OSError:
        return ()
