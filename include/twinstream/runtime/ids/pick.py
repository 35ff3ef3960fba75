"""Picking the rows with suspicious hashes out of large files: they are few, and Spark would look at every row."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from twinstream.failpoints import durable

_BITS = 20


class Among:
    """Tells which hashes are among some: a table of their first bits rules most others out."""

    def __init__(self, hashes: Any) -> None:
        import numpy as np

        self._sorted = np.sort(hashes)
        self._table = np.zeros(1 << _BITS, np.bool_)
        self._table[_first_bits(self._sorted)] = True

    def where(self, hashes: Any) -> Any:
        """The places in an Arrow array of hashes that hold one of them; a null is none."""
        import numpy as np

        found = hashes.fill_null(0).to_numpy().view(np.uint64)
        maybe = np.flatnonzero(np.take(self._table, _first_bits(found)))
        at = np.searchsorted(self._sorted, found[maybe])
        at[at == len(self._sorted)] = 0
        there = maybe[self._sorted[at] == found[maybe]]
        return there[hashes.is_valid().to_numpy(zero_copy_only=False)[there]] if hashes.null_count else there


def pick(files: Sequence[Path], hashes: Any, into: Path, columns: Mapping[str, str]) -> None:
    """Copies the rows whose `_id_hash` is one of these; `columns` says what each column is called there.

    `_row` is their number in the file. Times become microseconds.
    """
    into.mkdir(parents=True)
    among = Among(hashes)
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for picked in [
            pool.submit(_pick, path, into / f"{number}.parquet", among, columns) for number, path in enumerate(files)
        ]:
            picked.result()


def _pick(path: Path, target: Path, among: Among, columns: Mapping[str, str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    found, before = [], 0
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            hashes = file.read_row_group(group, ["_id_hash"], use_threads=False)["_id_hash"].combine_chunks()
            places = among.where(hashes)
            if len(places):
                rows = file.read_row_group(group, list(columns), use_threads=False)
                rows = rows.select(list(columns)).take(pa.array(places))
                found.append(rows.append_column("_row", pa.array(places + before, pa.int64())))
            before += len(hashes)
    if found:
        rows = pa.concat_tables(found).rename_columns([*columns.values(), "_row"])
        for number, field in enumerate(rows.schema):
            if pa.types.is_timestamp(field.type):
                rows = rows.set_column(number, field.name, rows[field.name].cast(pa.int64()))
        with durable("stage.suspects"):
            pq.write_table(rows, target)


def _first_bits(hashes: Any) -> Any:
    import numpy as np

    return (hashes >> np.uint64(64 - _BITS)).astype(np.intp)
