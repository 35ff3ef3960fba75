"""Suspects: hashes of ids that a group may have more than once, or that earlier txids may have.

Found beside Spark, by sorting the one column of hashes: most groups have few suspects, and only those need a join.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from twinstream.runtime.ids.copy import read_living
from twinstream.runtime.ids.known import KnownIds, read_hashes

SLICE_IDS = 32_000_000
"""So many hashes are looked at together; of a larger group, a slice of the hashes' range after the other."""


def times(files: Sequence[Path], time: str) -> dict[int, tuple[int, int]]:
    """The lowest and the highest event time of every txid in files of records, dead letters left out."""
    import pyarrow as pa

    found = []
    for path in files:
        rows = read_living(path, ["_txid"], time)
        found.append(rows.group_by("_txid").aggregate([("_event_micros", "min"), ("_event_micros", "max")]))
    spans: dict[int, tuple[int, int]] = {}
    for row in pa.concat_tables(found).to_pylist() if found else ():
        low, high = row["_event_micros_min"], row["_event_micros_max"]
        if low is not None:
            before = spans.get(row["_txid"], (low, high))
            spans[row["_txid"]] = min(low, before[0]), max(high, before[1])
    return spans


def suspects(
    files: Sequence[Path], spans: Mapping[int, tuple[int, int]], horizon: int, known: KnownIds
) -> tuple[Any, list[str]]:
    """The suspicious hashes of a group's files, and the committed id files that have some of them."""
    import numpy as np

    if not spans:
        return np.zeros(0, np.uint64), []
    lowest = min(low for low, _ in spans.values()) - horizon
    highest = max(high for _, high in spans.values()) + horizon
    found: list[Any] = []
    paths: set[str] = set()
    for hashes in _slices(files):
        hashes.sort()
        again = hashes[1:][hashes[1:] == hashes[:-1]]
        hits, there = known.find(hashes, min(spans), lowest, highest)
        found += [again, hits]
        paths.update(there)
    return np.unique(np.concatenate(found)), sorted(paths)


def _slices(files: Sequence[Path]) -> Iterator[Any]:
    """All hashes, a slice of their range at a time, so that memory does not grow with the group."""
    import numpy as np
    import pyarrow.parquet as pq

    rows = sum(pq.read_metadata(path).num_rows for path in files)
    slices = -(-rows // SLICE_IDS)
    width = np.uint64(2**64 // slices + 1) if slices > 1 else None
    for number in range(slices):
        parts = [read_hashes(path) for path in files]
        if width is not None:
            parts = [part[part // width == number] for part in parts]
        yield np.concatenate(parts)
