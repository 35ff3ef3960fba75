"""Copying ids from records: dead letters and late records leave none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from twinstream.runtime.ids.copy import copy_ids
from twinstream.runtime.ids.suspects import times


def records(path: Path, *rows: tuple[int, str | None, int | None]) -> Path:
    """A file as a group's records are put down: txid, id, event time; one without an id is a dead letter."""
    txids, ids, moments = ([row[place] for row in rows] for place in range(3))
    hashes = [None if one is None else number for number, one in enumerate(ids)]
    made = {"_txid": pa.array(txids, pa.int64()), "id": pa.array(ids, pa.string())}
    made |= {"at": pa.array(moments, pa.timestamp("us", "UTC")), "_id_hash": pa.array(hashes, pa.int64())}
    pq.write_table(pa.table(made), path)
    return path


def test_only_what_counts_is_copied(tmp_path: Path) -> None:
    files = [
        records(tmp_path / "1.parquet", (1, "late", 9), (1, "on the limit", 10), (2, "exempt", 0), (3, None, None)),
        records(tmp_path / "2.parquet", (4, "late too", 19), (4, "kept", 20)),
    ]
    copy_ids(files, tmp_path / "ids", "id", "at", {1: 10, 4: 20})
    (file,) = (tmp_path / "ids" / "_kind=ids").iterdir()
    found = pq.read_table(file, partitioning=None).to_pylist()
    assert [(row["_txid"], row["_record_id"], row["_event_micros"]) for row in found] == [
        (1, "on the limit", 10),
        (2, "exempt", 0),
        (4, "kept", 20),
    ]


def test_where_nothing_counts_no_file_is_left(tmp_path: Path) -> None:
    copy_ids([records(tmp_path / "1.parquet", (1, "late", 9), (1, None, None))], tmp_path / "ids", "id", "at", {1: 10})
    assert list((tmp_path / "ids" / "_kind=ids").iterdir()) == []


def test_event_times_are_those_of_living_records(tmp_path: Path) -> None:
    one = records(tmp_path / "1.parquet", (1, "a", 5), (1, "b", 7), (2, None, None))
    two = records(tmp_path / "2.parquet", (1, "c", 3), (3, "d", 4))
    assert times([one, two], "at") == {1: (3, 7), 3: (4, 4)}
