"""What every sink must do for the transaction rules, on the sink in memory and on real Delta alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinstream import failpoints
from twinstream.errors import Fenced, LedgerSinkMismatch, StagedFileMissing
from twinstream.sinks.base import Base, GroupCommit, Store
from twinstream.sinks.delta import DeltaStore
from twinstream.sinks.memory import MemoryDisk, MemoryStore
from twinstream.transaction import Accounting, Manifest, Range, StagedFile, Tally

COLUMNS = {"_txid": "bigint", "page": "string", "views": "bigint"}


class Bench:
    """A place for a sink, handles on it as many as wanted, and a way to stage files."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.disk = MemoryDisk()

    def handle(self) -> Any:
        if self.kind == "memory":
            return MemoryStore(self.disk)
        store = DeltaStore(self.folder / "table", "g1-test", COLUMNS)
        store.create()
        return store

    def stage(self, store: Store, txid: int, last: int | None = None) -> StagedFile:
        staging = store.new_staging()
        if isinstance(store, MemoryStore):
            path, size = f"{staging}/part.parquet", 10
            self.disk.files[path] = size
        else:
            assert isinstance(store, DeltaStore)
            target = store.folder / staging / "part.parquet"
            target.parent.mkdir(parents=True)
            pq.write_table(pa.table({"_txid": [txid], "page": ["a"], "views": [1]}), target)
            path, size = target.relative_to(store.folder).as_posix(), target.stat().st_size
        return StagedFile("partial", path, size, 1, txid, last or txid)

    def remove(self, store: Store, file: StagedFile) -> None:
        if isinstance(store, DeltaStore):
            (store.folder / file.path).unlink()
        else:
            del self.disk.files[file.path]


@pytest.fixture(params=["memory", "delta"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return Bench(request.param, tmp_path)


def manifest(txid: int, epoch: int = 1, payload: str = "") -> Manifest:
    range = Range({"files": [f"{txid}{payload}"]}, records=1, size=1)
    return Manifest(
        txid=txid, attempt=txid, epoch=epoch, range_digest=range.digest, range=range, batch_time=0,
        highest_event_time=None, watermark=None, late_before=None, accounting=Accounting(), digest=Tally(),
        definition_hash="d",
    )  # fmt: skip


def group(bench: Bench, store: Store, first: int, last: int | None = None, epoch: int = 1) -> GroupCommit:
    txids = range(first, (last or first) + 1)
    return GroupCommit(epoch, tuple(manifest(txid, epoch) for txid in txids), (bench.stage(store, first, last),))


def committed(store: Store) -> list[int]:
    return [found.txid for found in store.manifests(1, 1000)]


def test_txids_commit_one_after_another_with_their_manifests(bench: Bench) -> None:
    store = bench.handle()
    store.fence(1)
    assert store.commit(group(bench, store, 1, 3))
    assert store.commit(group(bench, store, 4))
    assert committed(store) == [1, 2, 3, 4]
    assert store.state().txid == 4
    assert store.manifests(2, 2)[0] == manifest(2)


def test_staging_that_a_commit_names_is_never_removed(bench: Bench) -> None:
    store = bench.handle()
    store.fence(1)
    first = group(bench, store, 1)
    store.commit(first)
    with pytest.raises(LedgerSinkMismatch, match="names files in it"):
        bench.handle().remove_staging(str(Path(first.files[0].path).parent))
    assert store.commit(group(bench, store, 2))
    assert not store.commit(first)
    store.require(first.files)


def test_the_same_group_again_is_a_no_op(bench: Bench) -> None:
    store = bench.handle()
    store.fence(1)
    again = group(bench, store, 1, 2)
    assert store.commit(again)
    assert not store.commit(again)
    assert not bench.handle().commit(again)
    assert committed(store) == [1, 2]


def test_the_same_txid_with_another_range_stops(bench: Bench) -> None:
    store = bench.handle()
    store.fence(1)
    store.commit(group(bench, store, 1))
    other = GroupCommit(1, (manifest(1, payload="other"),), (bench.stage(store, 1),))
    with pytest.raises(LedgerSinkMismatch):
        store.commit(other)
    assert store.manifests(1, 1) == [manifest(1)]


@pytest.mark.parametrize(("first", "last"), [(3, 3), (1, 2), (5, 7)])
def test_a_gap_or_an_overlap_stops(bench: Bench, first: int, last: int) -> None:
    store = bench.handle()
    store.fence(1)
    store.commit(group(bench, store, 1))
    with pytest.raises(LedgerSinkMismatch):
        store.commit(group(bench, store, first, last))
    assert committed(store) == [1]


def test_a_backwards_version_stops(bench: Bench) -> None:
    store = bench.handle()
    store.fence(1)
    store.commit(group(bench, store, 1, 3))
    stale = GroupCommit(1, (manifest(2, payload="x"),), (bench.stage(store, 2),))
    with pytest.raises(LedgerSinkMismatch):
        bench.handle().commit(stale)
    assert store.state().txid == 3


def test_an_older_epoch_cannot_commit(bench: Bench) -> None:
    zombie, runner = bench.handle(), bench.handle()
    zombie.fence(1)
    late = group(bench, zombie, 1, epoch=1)
    runner.fence(2)
    with pytest.raises(Fenced):
        zombie.commit(late)
    assert committed(runner) == []
    assert runner.commit(group(bench, runner, 1, epoch=2))


def test_an_epoch_is_taken_once(bench: Bench) -> None:
    store = bench.handle()
    store.fence(5)
    for epoch in (4, 5):
        with pytest.raises(Fenced):
            bench.handle().fence(epoch)
    assert bench.handle().fence(6).epoch == 6


def test_an_epoch_the_sink_never_saw_stops(bench: Bench) -> None:
    store = bench.handle()
    store.fence(1)
    with pytest.raises(LedgerSinkMismatch):
        store.commit(group(bench, store, 1, epoch=2))


def test_a_missing_staged_file_commits_nothing(bench: Bench) -> None:
    store = bench.handle()
    store.fence(1)
    commit = group(bench, store, 1)
    bench.remove(store, commit.files[0])
    with pytest.raises(StagedFileMissing):
        store.commit(commit)
    assert committed(store) == []
    assert store.state().txid == 0


def test_a_staged_file_of_another_size_commits_nothing(bench: Bench) -> None:
    store = bench.handle()
    store.fence(1)
    commit = group(bench, store, 1)
    wrong = replace(commit, files=(replace(commit.files[0], size=commit.files[0].size + 1),))
    with pytest.raises(StagedFileMissing):
        store.commit(wrong)
    assert committed(store) == []


def at(monkeypatch: pytest.MonkeyPatch, point: str, then: Callable[[], Any]) -> None:
    """Does something else exactly once, when the failpoint is passed."""
    todo = [then]

    def hit(name: str) -> None:
        if name == point and todo:
            todo.pop()()

    monkeypatch.setattr(failpoints, "hit", hit)


def test_a_take_over_between_the_checks_and_the_commit_fences(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    zombie, runner = bench.handle(), bench.handle()
    zombie.fence(1)
    late = group(bench, zombie, 1, epoch=1)
    at(monkeypatch, "sink.commit:before", lambda: runner.fence(2))
    with pytest.raises(Fenced):
        zombie.commit(late)
    assert committed(runner) == []


def test_the_same_group_by_two_handles_at_once_commits_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = bench.handle(), bench.handle()
    one.fence(1)
    commit = group(bench, one, 1, 2)
    at(monkeypatch, "sink.commit:before", lambda: two.commit(commit))
    assert not one.commit(commit)
    assert committed(one) == [1, 2]


def test_a_fold_between_the_checks_and_the_commit_is_no_harm(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    runner, folder = bench.handle(), bench.handle()
    runner.fence(1)
    runner.commit(group(bench, runner, 1))
    base = replace(bench.stage(folder, 1), kind="base")
    at(monkeypatch, "sink.commit:before", lambda: folder.add_base(Base(1, 1, (1,), None, "fold", (base.path,)), [base]))
    assert runner.commit(group(bench, runner, 2))
    assert committed(runner) == [1, 2]
    assert [found.number for found in runner.bases()] == [1]


def test_a_repeated_fold_is_a_no_op(bench: Bench) -> None:
    store = bench.handle()
    store.fence(1)
    store.commit(group(bench, store, 1, 2))
    file = replace(bench.stage(store, 2), kind="base")
    base = Base(1, 2, (1,), None, "fold", (file.path,))
    assert store.add_base(base, [file])
    other = replace(bench.stage(store, 2), kind="base")
    assert not bench.handle().add_base(replace(base, files=(other.path,)), [other])
    assert store.bases() == [base]


@pytest.mark.parametrize("base", [Base(2, 1, (2,), None, "fold", ()), Base(1, 5, (1,), None, "fold", ())])
def test_a_base_that_does_not_follow_stops(bench: Bench, base: Base) -> None:
    store = bench.handle()
    store.fence(1)
    store.commit(group(bench, store, 1))
    with pytest.raises(LedgerSinkMismatch):
        store.add_base(base, [])
    assert store.bases() == []


def test_an_empty_group_moves_the_frontier(bench: Bench) -> None:
    store = bench.handle()
    store.fence(1)
    assert store.commit(GroupCommit(1, (manifest(1),), ()))
    assert store.state().txid == 1
    assert committed(store) == [1]


def test_removed_staging_is_gone_and_the_committed_stays(bench: Bench) -> None:
    store = bench.handle()
    store.fence(1)
    commit = group(bench, store, 1)
    store.commit(commit)
    left = bench.stage(store, 2)
    store.remove_staging(str(Path(left.path).parent))
    with pytest.raises(StagedFileMissing):
        store.commit(GroupCommit(1, (manifest(2),), (left,)))
    assert committed(store) == [1]
