"""Copying ids from a group's records into id files: four columns from file to file, which is no work for Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from twinstream.failpoints import durable
from twinstream.runtime.ids.known import IDS

FILE_IDS = 1_000_000
"""Files of records are joined into id files of at least so many ids."""
STATISTICS = ["_txid", "_event_micros"]
"""Of these columns a footer tells the span."""


def copy_ids(files: Sequence[Path], into: Path, id: str, time: str, late_before: Mapping[int, int]) -> None:
    """Writes `_kind=ids` below the folder: the ids with txid, event time and hash; late ones left out."""
    folder = into / f"_kind={IDS}"
    folder.mkdir(parents=True)
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for written in [
            pool.submit(_copy, some, folder / f"{number}.parquet", id, time, late_before)
            for number, some in enumerate(_together(files))
        ]:
            written.result()


def read_living(path: Path, columns: Sequence[str], time: str) -> Any:
    """These columns of a file of records and their `_event_micros`, dead letters left out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    wanted = dict.fromkeys([*columns, time, "_id_hash"])
    rows = pq.read_table(path, columns=list(wanted), partitioning=None)
    if rows["_id_hash"].null_count:
        rows = rows.filter(rows["_id_hash"].is_valid())
    return rows.select(columns).append_column("_event_micros", rows[time].cast(pa.int64()))


def _copy(files: Sequence[Path], target: Path, id: str, time: str, late_before: Mapping[int, int]) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = pa.concat_tables(read_living(path, ["_txid", id, "_id_hash"], time) for path in files)
    rows = rows.rename_columns(["_txid", "_record_id", "_id_hash", "_event_micros"])
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
        pq.write_table(rows, target, compression="snappy", use_dictionary=["_txid"], write_statistics=STATISTICS)


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
