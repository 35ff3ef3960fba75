"""The same world on a real Delta table: actors write Parquet files and commit them to a real log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.faults.model.world import World
from twinstream.sinks.delta import DeltaStore
from twinstream.sinks.memory import MemoryDisk
from twinstream.sinks.snapshot import read_bases, read_manifests


class Contents(dict):
    """What is in the files, read from them."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def __missing__(self, path: str) -> dict[int, list[int]]:
        rows: dict[int, list[int]] = defaultdict(list)
        for row in pq.ParquetFile(self._folder / path).read().to_pylist():
            rows[row["_txid"]].append(row["record"])
        self[path] = rows
        return rows


class DeltaWorld(World):
    """A world whose disk is a folder with a Delta table in it; `disk` is what a fresh look at it shows."""

    def __init__(self, folder: Path, template: Path, late: str = "drop") -> None:
        self.table = folder / "table"
        self._shown: MemoryDisk | None = None
        self._looker = self.store()
        self._looker.create()
        super().__init__(folder, template, late)
        self.contents = Contents(self.table)

    def store(self) -> DeltaStore:
        return DeltaStore(self.table, "g1-model", {"record": "bigint"})

    def keep(self, path: str, rows: dict[int, list[int]]) -> int:
        target = self.table / path
        target.parent.mkdir(parents=True, exist_ok=True)
        flat = [(txid, record) for txid, records in rows.items() for record in records]
        columns = {"_txid": pa.array([txid for txid, _ in flat], pa.int64()), "record": [record for _, record in flat]}
        pq.write_table(pa.table(columns), target)
        return target.stat().st_size

    def lose(self, path: str) -> None:
        (self.table / path).unlink()

    def check(self) -> None:
        with self._one_look():
            super().check()

    def check_ledger(self) -> None:
        with self._one_look():
            super().check_ledger()

    def result(self, frontier: int) -> list[int]:
        with self._one_look():
            return super().result(frontier)

    @property
    def disk(self) -> MemoryDisk:
        """The newest snapshot in the shape that the checks know; notes are the sink's own and not among the files."""
        return self._shown or self._look()

    @disk.setter
    def disk(self, value: MemoryDisk) -> None:
        """The folder is the disk."""

    @contextmanager
    def _one_look(self) -> Iterator[None]:
        """Nobody else is at work while the world is being checked: looking once is enough."""
        before = self._shown
        self._shown = self.disk
        try:
            yield
        finally:
            self._shown = before

    def _look(self) -> MemoryDisk:
        snapshot = self._looker.snapshot()
        notes = {file.path for kind in ("manifest", "bases") for file in snapshot.files.get(kind, ())}
        found = [path for path in (self.table / "_data").rglob("*") if path.is_file()]
        files = {path.relative_to(self.table).as_posix(): path.stat().st_size for path in found}
        assert notes <= set(files), "notes that a commit names are there"
        manifests = read_manifests(self.table, snapshot, 1, snapshot.state.txid)
        return MemoryDisk(
            files={path: size for path, size in files.items() if Path(path).name in ("part", "base")},
            version=snapshot.version,
            state=snapshot.state,
            manifests={manifest.txid: manifest for manifest in manifests},
            bases=read_bases(self.table, snapshot),
            live={file.path for kind in ("partial", "base") for file in snapshot.files.get(kind, ())},
        )
