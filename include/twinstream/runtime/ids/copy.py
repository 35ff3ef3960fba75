"""Copying ids from a group's records into id files: four columns from file to file, which is no work for Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from twinstream.failpoints import durable
from twinstream.runtime.ids.known import IDS

FILE_IDS = 1_000_000
"""Files of records are joined into id files of at least so many ids."""


def copy_ids(files: Sequence[Path], into: Path, column: str, late_before: Mapping[int, int]) -> None:
    """Writes `_kind=ids` below the folder: the ids in `column` with txid, event time and hash; late ones left out."""
    folder = into / f"_kind={IDS}"
    folder.mkdir(parents=True)
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for written in [
            pool.submit(_copy, some, folder / f"{number}.parquet", column, late_before)
            for number, some in enumerate(_together(files))
        ]:
            written.result()


def _copy(files: Sequence[Path], target: Path, column: str, late_before: Mapping[int, int]) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = ["_txid", column, "_event_micros", "_id_hash"]
    rows = pa.concat_tables(pq.read_table(path, columns=names, partitioning=None) for path in files).select(names)
    rows = rows.rename_columns(["_txid", "_record_id", "_event_micros", "_id_hash"])
    rows = rows.filter(rows["_id_hash"].is_valid())
    if late_before:
        txids = np.array(sorted(late_before))
        limits = np.array([late_before[txid] for txid in txids.tolist()])
        of_rows = rows["_txid"].to_numpy()
        at = np.minimum(np.searchsorted(txids, of_rows), len(txids) - 1)
        late = (txids[at] == of_rows) & (rows["_event_micros"].to_numpy() < limits[at])
        rows = rows.filter(pa.array(~late))
    if not rows.num_rows:
        return
    with durable("stage.ids"):
        pq.write_table(rows, target, compression="snappy", use_dictionary=["_txid"])


def _together(files: Sequence[Path]) -> list[list[Path]]:
    import pyarrow.parquet as pq

    found: list[list[Path]] = [[]]
    rows = 0
    for path in files:
        if rows >= FILE_IDS:
            found.append([])
            rows = 0
        found[-1].append(path)
        rows += pq.read_metadata(path).num_rows
    return [some for some in found if some]
