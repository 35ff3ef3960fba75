"""Known ids: found by hash in what is committed, through a filter that can be thrown away at any time."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.sinks.test_conformance import manifest
from twinstream.errors import LedgerSinkMismatch
from twinstream.runtime.ids import join
from twinstream.runtime.ids import known as module
from twinstream.runtime.ids.known import ID_COLUMNS, KnownIds
from twinstream.runtime.ids.segment import Wanted, open_segment, write_segment
from twinstream.sinks.base import GroupCommit
from twinstream.sinks.delta import DeltaStore
from twinstream.transaction import StagedFile

ALL = (-(10**18), 10**18)


class Table:
    """A generation's table with id files as a drain would leave them."""

    def __init__(self, folder: Path) -> None:
        self.store = DeltaStore(folder / "g1-test", "g1-test", {"_txid": "bigint", "page": "string"} | ID_COLUMNS)
        self.store.create()
        self.store.fence(1)
        self.folder = self.store.folder

    def stage(self, txid: int, hashes: Any, lowest: int = 0) -> StagedFile:
        path = self.folder / self.store.new_staging() / "_kind=ids" / "part.parquet"
        path.parent.mkdir(parents=True)
        signed = np.asarray(hashes, np.uint64).view(np.int64)
        rows = {"_txid": [txid] * len(signed), "_record_id": [str(one) for one in signed]}
        times = np.arange(lowest, lowest + len(signed), dtype=np.int64)
        pq.write_table(pa.table(rows | {"_event_micros": times, "_id_hash": signed}), path)
        name = path.relative_to(self.folder).as_posix()
        return StagedFile("ids", name, path.stat().st_size, len(signed), txid, txid)

    def commit(self, txid: int, hashes: Any, lowest: int = 0) -> StagedFile:
        file = self.stage(txid, hashes, lowest)
        self.store.commit(GroupCommit(1, (manifest(txid),), (file,)))
        return file

    def find(self, wanted: Any, before: int = 100, span: tuple[int, int] = ALL) -> tuple[list[int], list[str]]:
        found, paths = KnownIds(self.folder).find(np.sort(np.asarray(wanted, np.uint64)), before, *span)
        return found.tolist(), paths

    def segments(self) -> list[Path]:
        return sorted((self.folder / "_ids").iterdir())


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


def drawn(seed: int, count: int) -> Any:
    return np.random.default_rng(seed).integers(0, 2**64, count, np.uint64)


def test_every_id_that_is_committed_is_found_and_no_other(table: Table, seed: int) -> None:
    mine, others = drawn(seed, 5_000), drawn(seed + 1, 5_000)
    table.commit(1, mine[:2_000])
    table.commit(2, mine[2_000:])
    assert table.find(mine)[0] == np.unique(mine).tolist()
    assert table.find(others) == ([], [])
    assert table.find(np.concatenate([mine[:10], others]))[0] == sorted(mine[:10].tolist())


def test_ids_of_every_piece_and_every_segment_are_found(
    table: Table, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_UP", 7)
    mine, others = drawn(seed, 50), drawn(seed + 1, 50)
    files = [table.commit(txid, mine[25 * (txid - 1) : 25 * txid]) for txid in (1, 2)]
    found, paths = table.find(np.concatenate([mine, others]))
    assert (found, sorted(paths)) == (np.unique(mine).tolist(), sorted(file.path for file in files))
    assert table.find([]) == ([], [])


def test_the_filter_lets_one_in_a_hundred_through(tmp_path: Path, seed: int) -> None:
    made = write_segment(tmp_path, ["a"], (0, 1), drawn(seed, 200_000))
    assert made.words.nbytes < 1.6 * 200_000
    others = Wanted(np.sort(drawn(seed + 1, 200_000)))
    assert 0 < len(made.maybe(others)) < 0.015 * len(others.hashes)
    assert len(made.found(others)) == 0


def test_ids_that_nothing_committed_are_not_known(table: Table) -> None:
    table.commit(1, [1, 2])
    table.stage(2, [3, 4])
    assert table.find([1, 2, 3, 4])[0] == [1, 2]


def test_ids_of_later_txids_are_not_known(table: Table) -> None:
    for txid in (1, 2, 3):
        table.commit(txid, [txid * 10])
    assert table.find([10, 20, 30], before=3)[0] == [10, 20]
    assert table.find([10, 20, 30], before=2)[0] == [10]


def test_only_files_near_the_event_times_are_looked_at(table: Table) -> None:
    old = table.commit(1, [1, 2], lowest=0)
    new = table.commit(2, [1, 3], lowest=1_000)
    assert table.find([1, 2, 3], span=(900, 1_100)) == ([1, 3], [new.path])
    assert len(table.segments()) == 1, "what is far away is not even made"
    assert table.find([1, 2, 3], span=(0, 1)) == ([1, 2], [old.path])


@pytest.mark.parametrize("lost", ["all", "words.npy", "hashes.npy", "about.json", "half", "killed"])
def test_a_segment_that_is_lost_or_broken_is_made_again(table: Table, lost: str) -> None:
    table.commit(1, [5, 6, 7])
    table.find([5])
    (segment,) = table.segments()
    if lost == "all":
        shutil.rmtree(segment.parent)
    elif lost == "half":
        content = (segment / "hashes.npy").read_bytes()
        (segment / "hashes.npy").write_bytes(content[: len(content) - 8])
    elif lost == "killed":
        segment.rename(segment.with_name(f".{segment.name}"))
    else:
        (segment / lost).unlink()
    assert table.find([5, 8])[0] == [5]
    assert [path.name[0] for path in table.segments()].count(".") == (lost == "killed")


def test_a_segment_of_a_file_that_is_not_committed_is_not_believed(table: Table) -> None:
    table.commit(1, [5])
    stranger = table.stage(2, [6])
    write_segment(table.folder / "_ids", [stranger.path], (0, 10), np.array([6, 7], np.uint64))
    assert table.find([5, 6, 7])[0] == [5]
    assert [open_segment(path).paths for path in table.segments()] != [(stranger.path,)]


def test_many_small_segments_become_one(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL_SEGMENTS", 4)
    known = KnownIds(table.folder)
    for txid in range(1, 12):
        table.commit(txid, [txid])
        found, _ = known.find(np.arange(100, dtype=np.uint64), 100, *ALL)
        assert found.tolist() == list(range(1, txid + 1))
        assert len(table.segments()) < 4


def test_an_id_file_that_is_gone_stops_everything(table: Table) -> None:
    file = table.commit(1, [1])
    (table.folder / file.path).unlink()
    with pytest.raises(LedgerSinkMismatch, match="is not there"):
        table.find([1])


def test_many_small_id_files_become_one_and_know_the_same(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join, "MANY", 3)
    for txid in (1, 2):
        table.commit(txid, [txid, 7])
    join.join_ids(table.store)
    assert len(table.store.snapshot().files["ids"]) == 2
    table.commit(3, [3])
    assert table.find([1, 2, 3, 7, 8])[0] == [1, 2, 3, 7]
    join.join_ids(table.store)
    (joined,) = table.store.snapshot().files["ids"]
    assert (joined.first_txid, joined.last_txid) == (1, 3)
    assert pq.read_table(table.folder / joined.path, partitioning=None).num_rows == 5
    assert table.find([1, 2, 3, 7, 8]) == ([1, 2, 3, 7], [joined.path])
