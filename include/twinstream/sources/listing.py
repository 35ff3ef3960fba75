"""Listing a folder of files that only grows, cheaply when most of it is consumed already.

A folder whose modification time has not changed since all its files were planned has nothing new and is not listed
again. That is trusted only when the time was well in the past when the folder was listed: a file could have come in
the same tick of the clock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from twinstream.errors import SourceUnreadable

SETTLED_NANOS = 2_000_000_000
_TEMPORARY = (".tmp", ".temp", ".part", ".partial", ".inprogress", ".crdownload", ".swp", "._COPYING_", "~")


@dataclass(frozen=True)
class Folder:
    """One folder's visible files; `modified` is set if an unchanged folder may be skipped next time."""

    path: str
    names: tuple[str, ...]
    modified: int | None


def walk(root: Path, suffixes: tuple[str, ...], known: Mapping[str, int]) -> Iterator[Folder]:
    """All folders below `root` that may have something new, in order of their paths (relative, '' for the root)."""
    if not root.is_dir():
        raise SourceUnreadable(
            f"The source folder {root} does not exist.",
            next_step="Make the folder, or correct the path of FileSource in the definition.",
        )
    yield from _walk(root, "", suffixes, known)


def _walk(root: Path, folder: str, suffixes: tuple[str, ...], known: Mapping[str, int]) -> Iterator[Folder]:
    path = root / folder
    try:
        modified = os.stat(path).st_mtime_ns
        settled = time.time_ns() - modified > SETTLED_NANOS
        names, children = [], []
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name.startswith((".", "_")) or entry.name.endswith(_TEMPORARY):
                    continue
                if entry.is_dir():
                    children.append(entry.name)
                elif entry.name.endswith(suffixes):
                    names.append(entry.name)
    except OSError as error:
        raise SourceUnreadable(
            f"The source folder {path} cannot be read: {error.strerror}.",
            next_step="Give the user that runs Twinstream the right to read it.",
        ) from error
    if known.get(_key(folder)) != modified:
        yield Folder(folder, tuple(sorted(names)), modified if settled else None)
    for child in sorted(children):
        yield from _walk(root, f"{folder}/{child}" if folder else child, suffixes, known)


def _key(folder: str) -> str:
    return f"source/{folder}" if folder else "source"
