"""Listing a folder of files that only grows, cheaply when most of it is consumed already.

A folder that has not changed since all its files were planned has nothing new and is not listed again: the folders
below it are known by then, and only they are looked at. What tells is the time of its last change as the kernel keeps
it (ctime): copying tools set modification times back, that one no one can. It is trusted only when it was well in the
past when the folder was listed (a file could have come in the same tick of the clock), and not on file systems in user
space, which often do not keep it (object stores).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from twinstream.errors import SourceUnreadable
from twinstream.filesystems import filesystem_of

SETTLED_NANOS = 2_000_000_000
UNSEEN = 0
"""Stands for the time of a folder that is known to be there but must still be listed."""
_TEMPORARY = (".tmp", ".temp", ".part", ".partial", ".inprogress", ".crdownload", ".swp", "._COPYING_", "~")


@dataclass(frozen=True)
class Folder:
    """One folder's visible files; `changed` is set if the folder may be skipped as long as that stays the same."""

    path: str
    names: tuple[str, ...]
    changed: int | None
    children: tuple[str, ...] = ()
    """Paths of the folders in it: whoever remembers this folder must remember that they are there."""


def walk(root: Path, suffixes: tuple[str, ...], known: Mapping[str, int]) -> Iterator[Folder]:
    """All folders below `root` that may have something new, in order of their paths (relative, '' for the root).

    `known` has the times of the last change of folders that were seen through, by `key(path)`.
    """
    try:
        if not root.is_dir():
            raise SourceUnreadable(
                f"The source folder {root} {'is not a folder' if root.exists() else 'does not exist'}.",
                next_step="Make the folder, or correct the path of FileSource in the definition.",
            )
    except OSError as error:
        raise _unreadable(root, error) from error
    trusted = not filesystem_of(root).startswith("fuse")
    yield from _Walk(root, suffixes, known if trusted else {}, trusted).below("")


def key(folder: str) -> str:
    """How the ledger names a folder of the source."""
    return f"source/{folder}" if folder else "source"


class _Walk:
    """One pass over the folders."""

    def __init__(self, root: Path, suffixes: tuple[str, ...], known: Mapping[str, int], trusted: bool) -> None:
        self._root = root
        self._suffixes = suffixes
        self._known = known
        self._trusted = trusted
        self._children: dict[str, list[str]] = {}
        for name in known:
            parent, _, child = name.rpartition("/")
            if parent:
                self._children.setdefault(parent, []).append(child)

    def below(self, folder: str) -> Iterator[Folder]:
        path = self._root / folder
        try:
            changed = os.stat(path).st_ctime_ns
            if self._known.get(key(folder)) == changed:
                found, children = None, self._children.get(key(folder), [])
            else:
                settled = self._trusted and time.time_ns() - changed > SETTLED_NANOS
                names, children = self._list(path)
                found = Folder(
                    folder,
                    tuple(sorted(names)),
                    changed if settled else None,
                    tuple(_inside(folder, child) for child in sorted(children)),
                )
        except (FileNotFoundError, NotADirectoryError) as error:
            if folder:
                return
            raise _unreadable(path, error) from error
        except OSError as error:
            raise _unreadable(path, error) from error
        if found is not None:
            yield found
        for child in sorted(children):
            yield from self.below(_inside(folder, child))

    def _list(self, path: Path) -> tuple[list[str], list[str]]:
        """Names of the files and of the folders in a folder that are there for others."""
        names, children = [], []
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name.startswith((".", "_")) or entry.name.endswith(_TEMPORARY):
                    continue
                if entry.is_dir():
                    children.append(entry.name)
                elif entry.name.endswith(self._suffixes) and (entry.is_file() or entry.is_symlink()):
                    names.append(entry.name)
        for name in (*names, *children):
            if not _is_text(name):
                raise SourceUnreadable(
                    f"The source folder {path} holds {os.fsencode(name)!r}, a name that is not UTF-8.",
                    next_step="Rename it, then run the command again.",
                )
        for name in names:
            if ":" in name:
                raise SourceUnreadable(
                    f"The source folder {path} holds {name!r}: Spark cannot read a file with a colon in its name.",
                    next_step="Rename it, then run the command again.",
                )
        return names, children


def _inside(folder: str, child: str) -> str:
    return f"{folder}/{child}" if folder else child


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unreadable(path: Path, error: OSError) -> SourceUnreadable:
    return SourceUnreadable(
        f"The source folder {path} cannot be read: {error.strerror}.",
        next_step="Give the user that runs Twinstream the right to read it.",
    )
