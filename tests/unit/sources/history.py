"""What a source may ask of the ledger, kept in memory: planning without a ledger."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from twinstream.ledger.batches import split_claim
from twinstream.sources.base import Places, Plan
from twinstream.sources.files import FileSource
from twinstream.transaction import Range

OLD = time.time() - 3600
Later = Callable[..., None]
"""Lets time pass for whoever asks for it: what is on disk grows older by that."""


@dataclass
class Memory:
    """Keeps a plan as the ledger does."""

    ranges: list[Range] = field(default_factory=list)
    folders: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """Folders whose claims were looked up."""

    def last(self) -> Range | None:
        return self.ranges[-1] if self.ranges else None

    def known_folders(self) -> dict[str, int]:
        return dict(self.folders)

    def claimed(self, folder: str) -> set[str]:
        self.asked.append(folder)
        claims = [split_claim(claim) for range_ in self.ranges for claim in range_.claims]
        return {name for place, name in claims if place == folder}

    def plan(self, source: FileSource, home: Path, batch_records: int = 10, enough: int = 10**12) -> Plan:
        """Plans and keeps what was found."""
        found = source.plan(Places(home), self, batch_records, enough)
        self.ranges += found.ranges
        self.folders |= dict(found.seen_folders)
        return found


def write(folder: Path, name: str, records: int = 1) -> Path:
    """A JSON-lines file, there since an hour ago."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f'{{"id": "{name}-{number}", "amount": {number}}}\n' for number in range(records)))
    os.utime(path, (OLD, OLD))
    return path


def paths(ranges: Iterable[Range]) -> list[list[str]]:
    return [[file["path"] for file in range_.payload["files"]] for range_ in ranges]
