"""Known ids: what the committed id files hold, looked up by hash without reading them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twinstream.runtime.ids.segment import Segment, Wanted, open_segment, remove_segment, write_segment
from twinstream.sinks.base import mismatch
from twinstream.sinks.delta import DeltaStore

IDS = "ids"
"""The kind of rows that hold record ids."""
ID_COLUMNS = {"_record_id": "string", "_event_micros": "bigint", "_id_hash": "bigint"}
"""What an id row holds beside its `_txid`."""
SEGMENT_IDS = 8_000_000
"""A segment is made from about so many ids; it takes ten bytes of each."""
SMALL_SEGMENTS = 8
"""So many small segments are joined into one."""
LOOK_UP = 65_536
"""So many hashes are looked for together, in one segment after the other: they stay in the processor's cache."""
MAKING_SECONDS = 3600.0
"""A segment that is not whole may be in the making for so long."""


@dataclass(frozen=True)
class IdFile:
    """A committed id file: its rows and the span of their event times."""

    path: str
    rows: int
    lowest: int
    highest: int


@dataclass
class KnownIds:
    """The ids of a generation's committed txids. Segments are derived from the committed files and only from them."""

    table: Path
    _files: dict[str, IdFile] = field(default_factory=dict)
    _store: DeltaStore | None = None

    def find(self, wanted: Any, before: int, lowest: int, highest: int) -> tuple[Any, list[str]]:
        """Those of the wanted hashes (sorted) that txids below `before` have at these event times, and their files.

        Which ids, and at which times, only the files themselves can say: hashes may be those of other ids.
        """
        import numpy as np

        segments = sorted(self._segments(before, lowest, highest), key=lambda one: len(one.words))

        def look(start: int) -> list[Any]:
            some = Wanted(wanted[start : start + LOOK_UP])
            return [segment.found(some) for segment in segments]

        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            looked = list(pool.map(look, range(0, len(wanted), LOOK_UP)))
        hits = [np.concatenate(found) for found in zip(*looked, strict=True)]
        paths = [path for segment, found in zip(segments, hits, strict=False) if len(found) for path in segment.paths]
        return np.unique(np.concatenate([wanted[:0], *hits])), paths

    def _segments(self, before: int, lowest: int, highest: int) -> list[Segment]:
        """Segments of all committed id files that can matter; what is missing is made, what is superfluous deleted."""
        files = {file.path: file for file in self._committed(before)}
        there = self._there(files)
        covered = {path for segment in there for path in segment.paths}
        near = [f for f in files.values() if f.path not in covered and f.highest >= lowest and f.lowest <= highest]
        there += [self._made(some) for some in _cut(near)]
        small = [segment for segment in there if segment.rows < SEGMENT_IDS // 2]
        if len(small) >= SMALL_SEGMENTS:
            joined = [self._made(some) for some in _cut([files[path] for one in small for path in one.paths])]
            for segment in small:
                remove_segment(segment.folder)
            there = [segment for segment in there if segment not in small] + joined
        return [segment for segment in there if segment.highest >= lowest and segment.lowest <= highest]

    def _there(self, files: Iterable[str]) -> list[Segment]:
        """The segments that are there, each file in one of them at most, and none that is not committed."""
        known = set(files)
        found: list[Segment] = []
        for folder in sorted(self._folder.iterdir()) if self._folder.is_dir() else ():
            if folder.name.startswith(".") and time.time() - folder.stat().st_mtime < MAKING_SECONDS:
                continue
            try:
                segment = open_segment(folder)
            except (OSError, ValueError, KeyError):
                remove_segment(folder)
                continue
            if not folder.name.startswith(".") and known.issuperset(segment.paths):
                known.difference_update(segment.paths)
                found.append(segment)
            else:
                remove_segment(folder)
        return found

    @property
    def _folder(self) -> Path:
        return self.table / "_ids"

    def _committed(self, before: int) -> list[IdFile]:
        """The id files that the sink has committed for txids below `before`."""
        if self._store is None:
            self._store = DeltaStore(self.table, self.table.name, {})
        live = self._store.snapshot().files.get(IDS, ())
        return [self._look(file.path) for file in live if file.last_txid is None or file.last_txid < before]

    def _look(self, path: str) -> IdFile:
        if path not in self._files:
            import pyarrow.parquet as pq

            try:
                with pq.ParquetFile(self.table / path) as file:
                    footer = file.metadata
            except FileNotFoundError as error:
                raise mismatch(f"The file {self.table / path} is named by the sink but is not there") from error
            column = next(n for n in range(footer.num_columns) if footer.schema.column(n).path == "_event_micros")
            spans = [footer.row_group(n).column(column).statistics for n in range(footer.num_row_groups)]
            lowest, highest = min(span.min for span in spans), max(span.max for span in spans)
            self._files[path] = IdFile(path, footer.num_rows, lowest, highest)
        return self._files[path]

    def _made(self, files: Sequence[IdFile]) -> Segment:
        import numpy as np

        hashes = np.concatenate([read_hashes(self.table / file.path) for file in files])
        span = min(file.lowest for file in files), max(file.highest for file in files)
        return write_segment(self._folder, [file.path for file in files], span, hashes)


def read_hashes(path: Path) -> Any:
    """The hashes of a file's ids; rows without one are no ids."""
    import numpy as np
    import pyarrow.parquet as pq

    column = pq.read_table(path, columns=["_id_hash"], partitioning=None)["_id_hash"].combine_chunks().drop_null()
    return column.to_numpy().view(np.uint64)


def _cut(files: Sequence[IdFile]) -> list[list[IdFile]]:
    """Files in the order of their event times, so many together as a segment should hold."""
    found: list[list[IdFile]] = []
    rows = 0
    for file in sorted(files, key=lambda file: (file.lowest, file.path)):
        if not found or rows + file.rows > SEGMENT_IDS:
            found.append([])
            rows = 0
        found[-1].append(file)
        rows += file.rows
    return found
