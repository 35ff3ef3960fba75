"""Durable means synced: data, log entry and folder reach the disk before anything is marked as done."""

from __future__ import annotations

import os
from pathlib import Path


def sync_file(path: Path) -> None:
    """Makes a file's content durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Makes a folder's names durable."""
    sync_file(path)


def sync_tree(folder: Path) -> None:
    """Syncs every file below a folder, and the folders."""
    for found in (folder, *folder.rglob("*")):
        sync_file(found)
