"""Planning files: every file in exactly one txid, in order, up to the first that cannot be used."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.permissions import without_rights
from tests.unit.sources.history import Later, Memory, paths, write
from twinstream.errors import DefinitionError, SchemaDrift, SourceUnreadable
from twinstream.sources import files, listing, scan
from twinstream.sources.base import Places
from twinstream.sources.files import FileSource


def test_files_are_put_together_up_to_the_target(folder: Path, home: Path, source: FileSource) -> None:
    for name, records in (("a", 4), ("b", 6), ("c", 1), ("d", 9), ("e", 5)):
        write(folder, f"{name}.json", records)
    found = Memory().plan(source, home, batch_records=10)
    assert paths(found.ranges) == [["a.json", "b.json"], ["c.json", "d.json"], ["e.json"]]
    assert [range_.records for range_ in found.ranges] == [10, 10, 5]
    assert (found.more, found.problem) == (False, None)


def test_a_file_is_never_split_however_small_the_target(folder: Path, home: Path, source: FileSource) -> None:
    write(folder, "a.json", 50)
    write(folder, "b.json", 50)
    assert paths(Memory().plan(source, home, batch_records=1).ranges) == [["a.json"], ["b.json"]]


def test_a_range_says_what_is_in_it(folder: Path, home: Path, source: FileSource, later: Later) -> None:
    path = write(folder, "day=1/a.json", 3)
    later()
    (range_,) = Memory().plan(source, home).ranges
    size = path.stat().st_size
    (file,) = range_.payload["files"]
    assert (file["path"], file["size"], file["records"]) == ("day=1/a.json", size, 3)
    assert (range_.records, range_.size, range_.claims) == (3, size, ("source/day=1/a.json",))
    assert range_.hints == {"day=1/a.json": [path.stat().st_mtime_ns, path.stat().st_ctime_ns, path.stat().st_ino]}
    assert "hint" not in file, "a copied file is the same file"


def test_empty_files_are_planned_too(folder: Path, home: Path, source: FileSource) -> None:
    """Empty is not missing."""
    write(folder, "a.json", 0)
    (range_,) = Memory().plan(source, home).ranges
    assert (range_.records, range_.size, paths([range_])) == (0, 0, [["a.json"]])


def test_an_empty_folder_gives_no_txid(home: Path, source: FileSource) -> None:
    assert Memory().plan(source, home).ranges == ()


def test_what_is_planned_is_not_planned_again(folder: Path, home: Path, source: FileSource) -> None:
    memory = Memory()
    write(folder, "b.json")
    memory.plan(source, home)
    write(folder, "a.json")
    write(folder, "c.json")
    assert paths(memory.plan(source, home).ranges) == [["a.json", "c.json"]]
    assert memory.plan(source, home).ranges == ()


@given(data=st.data())
@settings(max_examples=40)
def test_every_file_is_in_exactly_one_txid_however_they_arrive(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    home = tmp_path_factory.mktemp("random")
    (home / "in").mkdir()
    source, memory = FileSource("in", schema="id string, amount int"), Memory()
    names: set[str] = set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing, "SETTLED_NANOS", 30_000_000)
        for _ in range(data.draw(st.integers(1, 4))):
            time.sleep(data.draw(st.sampled_from([0, 0.04])))
            places = data.draw(st.lists(st.sampled_from(["", "a/", "a/b/", "c/", "a/b/d/"]), max_size=4))
            for place in places:
                names.add(name := f"{place}{len(names):03}.json")
                write(home / "in", name, data.draw(st.integers(0, 5)))
            target, enough = data.draw(st.integers(1, 12)), data.draw(st.sampled_from([1, 100, 10**9]))
            while (found := memory.plan(source, home, target, enough)).more:
                pass
            assert found.problem is None
    planned = [path for files in paths(memory.ranges) for path in files]
    assert sorted(planned) == sorted(names), "each file once"


def test_planning_stops_when_there_is_enough_and_says_that_there_is_more(
    folder: Path, home: Path, source: FileSource
) -> None:
    for number in range(6):
        write(folder, f"{number}.json", 10)
    size = (folder / "0.json").stat().st_size
    memory = Memory()
    found = memory.plan(source, home, batch_records=10, enough=2 * size)
    assert paths(found.ranges) == [["0.json"], ["1.json"]]
    assert found.more
    assert found.seen_folders == (), "the folder is not seen through"
    found = memory.plan(source, home, batch_records=10, enough=4 * size)
    assert (len(found.ranges), found.more) == (4, False)


def test_many_tiny_files_are_planned_quickly(folder: Path, home: Path, source: FileSource) -> None:
    for number in range(3_000):
        (folder / f"{number:05}.json").write_text('{"id": "a", "amount": 1}\n')
    started = time.monotonic()
    (range_,) = Memory().plan(source, home, batch_records=10**9).ranges
    assert range_.records == 3_000
    assert time.monotonic() - started < 30


def test_planning_stops_at_a_drifted_file_with_everything_before_it_planned(
    folder: Path, home: Path, source: FileSource
) -> None:
    memory = Memory()
    for name in ("a", "b", "d"):
        write(folder, f"{name}.json", 6)
    (folder / "c.json").write_text('{"id": "a", "amount": 1, "colour": "red"}\n')
    found = memory.plan(source, home, batch_records=10)
    assert paths(found.ranges) == [["a.json"], ["b.json"]]
    assert isinstance(found.problem, SchemaDrift)
    assert "c.json" in found.problem.what
    assert found.seen_folders == ()
    write(folder, "c.json", 6)
    assert paths(memory.plan(source, home, batch_records=100).ranges) == [["c.json", "d.json"]]


def test_a_drifted_file_is_let_in_where_the_definition_says_so(folder: Path, home: Path) -> None:
    source = FileSource("in", schema="id string, amount int", drift="ignore")
    (folder / "c.json").write_text('{"id": "a", "colour": "red"}\n' * 9)
    found = Memory().plan(source, home)
    assert (found.problem, found.ranges[0].records) == (None, 9)


def test_planning_stops_at_a_corrupt_parquet_file(folder: Path, home: Path) -> None:
    source = FileSource("in", format="parquet", schema="n bigint")
    for name in ("a", "c"):
        pq.write_table(pa.table({"n": [1, 2, 3]}), folder / f"{name}.parquet")
    (folder / "b.parquet").write_bytes(b"PAR1 no")
    (folder / "b.json").write_text("not looked at")
    found = Memory().plan(source, home)
    assert paths(found.ranges) == [["a.parquet"]]
    assert found.ranges[0].records == 3
    assert isinstance(found.problem, SourceUnreadable)
    assert "b.parquet" in found.problem.what


def test_planning_stops_at_a_file_that_may_not_be_read(folder: Path, home: Path, source: FileSource) -> None:
    for name in ("a", "b", "c"):
        write(folder, f"{name}.json")
    Memory().plan(source, home)
    with without_rights(folder / "b.json"):
        found = Memory().plan(source, home)
    assert paths(found.ranges) == [["a.json"]]
    assert isinstance(found.problem, SourceUnreadable)
    assert "b.json cannot be read: Permission denied" in found.problem.what


def test_a_file_that_is_gone_before_it_is_planned_belongs_to_no_txid(
    folder: Path, home: Path, source: FileSource
) -> None:
    write(folder, "a.json")
    (folder / "b.json").symlink_to(folder / "nothing")
    found = Memory().plan(source, home)
    assert paths(found.ranges) == [["a.json"]]
    assert isinstance(found.problem, SourceUnreadable)
    assert "belongs to no txid" in found.problem.untouched


def test_a_file_that_is_still_being_written_is_not_planned(
    folder: Path, home: Path, source: FileSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planned with a size that it does not keep, it would block the pipeline as changed."""
    path = write(folder, "a.json", 2)
    look = scan.scan_json_lines

    def and_meanwhile(*args: object) -> object:
        found = look(*args)  # type: ignore[arg-type]
        with path.open("a") as more:
            more.write('{"id": "late", "amount": 1}\n')
        return found

    memory = Memory()
    monkeypatch.setattr(files, "scan_json_lines", and_meanwhile)
    found = memory.plan(source, home)
    assert found.ranges == ()
    assert isinstance(found.problem, SourceUnreadable)
    assert "a.json is being written right now" in found.problem.what
    assert "rename" in found.problem.next_step
    monkeypatch.setattr(files, "scan_json_lines", look)
    assert memory.plan(source, home).ranges[0].records == 3


def test_a_folder_that_cannot_be_listed_stops_planning_after_what_came_before(
    folder: Path, home: Path, source: FileSource
) -> None:
    write(folder, "a/a.json")
    write(folder, "b/b.json")
    write(folder, "c/c.json")
    Memory().plan(source, home)
    with without_rights(folder / "b"):
        found = Memory().plan(source, home)
    assert paths(found.ranges) == [["a/a.json"]]
    assert isinstance(found.problem, SourceUnreadable)


def test_a_folder_that_is_not_there_is_a_problem_and_no_crash(home: Path) -> None:
    found = FileSource("nowhere", schema="id string").plan(Places(home), Memory(), 10, 10)
    assert isinstance(found.problem, SourceUnreadable)


def test_files_are_planned_in_one_order_whatever_the_disk_says(
    folder: Path, home: Path, source: FileSource, seed: int
) -> None:
    names = [f"{letter}{number}.json" for letter in "xyz" for number in range(40)]
    for name in random.Random(seed).sample(names, len(names)):
        write(folder, name)
    planned = [path for files in paths(Memory().plan(source, home, 7).ranges) for path in files]
    assert planned == sorted(names)


def test_what_is_brought_back_is_a_range_of_its_own(home: Path, source: FileSource) -> None:
    write(home / "back", "x.json", 3)
    range_ = source.range_of(home / "back", "x.json")
    assert (range_.claims, range_.records) == (("reinjected/x.json",), 3)
    source.verify(Places(home, reinjected=home / "back"), range_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "csv", "schema": "id string"}, "format='csv'"),
        ({"schema": ""}, "needs a schema"),
        ({"schema": "id strin"}, "strin"),
        ({"schema": "id string", "drift": "maybe"}, "drift='maybe'"),
    ],
)
def test_a_source_that_makes_no_sense_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        FileSource("in", **options)  # type: ignore[arg-type]


def test_a_fresh_file_gets_no_hint(folder: Path, home: Path, source: FileSource) -> None:
    """It could still change within the same tick of the clock, and its times would not tell."""
    path = write(folder, "a.json")
    os.utime(path)
    (range_,) = Memory().plan(source, home).ranges
    assert range_.hints == {}
