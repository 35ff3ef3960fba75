"""Snapshots of a generation's table: which files a version names, and the manifests and bases among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinstream.sinks.base import Base, SinkState, mismatch
from twinstream.transaction import Manifest


@dataclass(frozen=True)
class Snapshot:
    """One version of the table: everything a reader needs comes from here, so that it fits together."""

    version: int
    state: SinkState
    kept_from: int
    """Results as of a lower txid were cleaned away."""
    files: Mapping[str, tuple[LiveFile, ...]]
    """Live files by kind."""

    def all_files(self) -> list[LiveFile]:
        return [file for files in self.files.values() for file in files]


@dataclass(frozen=True)
class LiveFile:
    """A file that a snapshot names."""

    path: str
    size: int
    base: int | None
    first_txid: int | None
    last_txid: int | None


def live_files(table: Any) -> dict[str, tuple[LiveFile, ...]]:
    """The files that a version of a Delta table names, by kind."""
    import pyarrow as pa

    files: dict[str, list[LiveFile]] = {}
    for row in pa.table(table.get_add_actions(flatten=True)).to_pylist():
        base = row.get("partition._base")
        live = LiveFile(
            path=row["path"],
            size=row["size_bytes"],
            base=None if base is None else int(base),
            first_txid=row.get("min._txid"),
            last_txid=row.get("max._txid"),
        )
        files.setdefault(row["partition._kind"], []).append(live)
    return {kind: tuple(found) for kind, found in files.items()}


def read_manifests(folder: Path, snapshot: Snapshot, first: int, last: int) -> list[Manifest]:
    """The manifests of txids `first` to `last` in a snapshot, in order."""
    texts: dict[int, str] = {}
    for file in snapshot.files.get("manifest", ()):
        if file.last_txid is None or file.first_txid is None or (file.last_txid >= first and file.first_txid <= last):
            for row in read_notes(folder / file.path):
                if first <= row["_txid"] <= last:
                    texts[row["_txid"]] = row["_manifest"]
    return [Manifest.from_json(texts[txid]) for txid in sorted(texts)]


def read_bases(folder: Path, snapshot: Snapshot) -> list[Base]:
    """The bases of a snapshot, by number."""
    found = [
        Base.from_json(row["_manifest"])
        for file in snapshot.files.get("bases", ())
        for row in read_notes(folder / file.path)
    ]
    return sorted(found, key=lambda base: base.number)


def read_notes(path: Path) -> list[dict[str, Any]]:
    """The rows of a small file that tells of commits."""
    import pyarrow.parquet as pq

    try:
        rows: list[dict[str, Any]] = pq.ParquetFile(path).read(columns=["_txid", "_manifest"]).to_pylist()
    except FileNotFoundError as error:
        raise mismatch(f"The file {path} is named by the sink but is not there") from error
    return rows
