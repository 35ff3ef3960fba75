"""Listing: what is there for others, in order, and nothing twice."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.unit.permissions import without_rights
from tests.unit.sources.history import OLD, Later, Memory, paths, write
from twinstream import filesystems
from twinstream.errors import SourceUnreadable
from twinstream.sources import listing
from twinstream.sources.files import SUFFIXES, FileSource
from twinstream.sources.listing import UNSEEN, Folder, key, walk

JSON = SUFFIXES["json"]


def listed(root: Path, known: dict[str, int] | None = None) -> dict[str, list[str]]:
    return {found.path: list(found.names) for found in walk(root, JSON, known or {})}


def known_after(root: Path) -> dict[str, int]:
    """What the ledger remembers once everything is planned."""
    return {key(found.path): found.changed for found in walk(root, JSON, {}) if found.changed is not None}


def test_files_come_in_the_order_of_their_paths(folder: Path) -> None:
    for name in ("b.json", "a.jsonl", "c.ndjson", "z/1.json.gz", "date=2024-01-02/x.json", "date=2024-01-01/y.json"):
        write(folder, name)
    assert listed(folder) == {
        "": ["a.jsonl", "b.json", "c.ndjson"],
        "date=2024-01-01": ["y.json"],
        "date=2024-01-02": ["x.json"],
        "z": ["1.json.gz"],
    }


@pytest.mark.parametrize(
    "name",
    [
        ".a.json", "_a.json", "a.json.tmp", "a.json.part", "a.json.inprogress", "a.json~", "a.json._COPYING_", "a.csv",
        "a.json.bak", "json", ".hidden/a.json", "_temporary/0/a.json", "_SUCCESS", "upload.tmp/a.json",
    ],
)  # fmt: skip
def test_hidden_temporary_and_other_names_are_not_there_yet(folder: Path, name: str) -> None:
    write(folder, "x.json")
    write(folder, name)
    assert {file for names in listed(folder).values() for file in names} == {"x.json"}


def test_a_file_is_there_once_it_is_renamed(folder: Path) -> None:
    hidden = write(folder, ".a.json")
    assert listed(folder)[""] == []
    hidden.rename(folder / "a.json")
    assert listed(folder)[""] == ["a.json"]


def test_folders_nested_by_date_are_found_at_any_depth(folder: Path) -> None:
    write(folder, "2024/01/02/03/a.json")
    write(folder, "2024/01/b.json")
    assert {path: names for path, names in listed(folder).items() if names} == {
        "2024/01": ["b.json"],
        "2024/01/02/03": ["a.json"],
    }


def test_links_are_followed_and_what_is_no_file_is_left_alone(folder: Path, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", "a.json")
    (folder / "day").symlink_to(tmp_path / "elsewhere")
    (folder / "b.json").symlink_to(tmp_path / "elsewhere" / "a.json")
    os.mkfifo(folder / "pipe.json")
    assert listed(folder) == {"": ["b.json"], "day": ["a.json"]}


def test_an_unchanged_folder_is_not_listed_again(folder: Path, monkeypatch: pytest.MonkeyPatch, later: Later) -> None:
    for day in range(3):
        write(folder, f"day={day}/a.json")
    later()
    known = known_after(folder)
    assert len(known) == 4
    write(folder, "day=1/b.json")
    opened: list[str] = []
    scandir = os.scandir

    def watched(path: Path) -> object:
        opened.append(path.name)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", watched)
    assert listed(folder, known) == {"day=1": ["a.json", "b.json"]}
    assert opened == ["day=1"]


def test_a_new_folder_below_an_unchanged_one_is_found(folder: Path, later: Later) -> None:
    write(folder, "2024/01/a.json")
    later()
    known = known_after(folder)
    write(folder, "2024/02/b.json")
    assert listed(folder, known) == {"2024": [], "2024/02": ["b.json"]}


def test_a_time_of_just_now_is_not_trusted(folder: Path, later: Later) -> None:
    write(folder, "a.json")
    (found,) = walk(folder, JSON, {})
    assert found.changed is None
    later()
    (found,) = walk(folder, JSON, {})
    assert found.changed == folder.stat().st_ctime_ns


@pytest.mark.parametrize("ahead", [1, 3600])
def test_a_time_in_the_future_is_not_trusted(folder: Path, ahead: int, later: Later) -> None:
    """The file server's clock is ahead of this host's."""
    write(folder, "a.json")
    later(-ahead)
    (found,) = walk(folder, JSON, {})
    assert found.changed is None


def test_a_modification_time_that_was_set_back_hides_nothing(folder: Path, later: Later) -> None:
    """As rsync and tar do."""
    write(folder, "a.json")
    os.utime(folder, (OLD, OLD))
    later()
    known = known_after(folder)
    assert listed(folder, known) == {}
    write(folder, "b.json")
    os.utime(folder, (OLD, OLD))
    assert listed(folder, known) == {"": ["a.json", "b.json"]}


def test_on_file_systems_in_user_space_every_folder_is_listed_every_time(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: Later
) -> None:
    """An object store under FUSE may give a folder one modification time for ever."""
    write(folder, "day/a.json")
    later()
    known = known_after(folder)
    assert listed(folder, known) == {}
    (tmp_path / "mounts").write_text(f"bucket {folder} fuse.s3fs rw 0 0\n")
    monkeypatch.setattr(filesystems, "MOUNTS", str(tmp_path / "mounts"))
    assert listed(folder, known) == {"": [], "day": ["a.json"]}
    assert known_after(folder) == {}


def test_a_folder_that_came_while_another_was_settling_is_never_overlooked(
    folder: Path, home: Path, source: FileSource, later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parent is remembered at once, the child was too fresh to be: it must be looked at again."""
    memory = Memory()
    (folder / "day=1").mkdir()
    time.sleep(0.05)  # the file system's clock goes in steps
    write(folder, "day=1/a.json")
    made, filled = folder.stat().st_ctime_ns, (folder / "day=1").stat().st_ctime_ns
    monkeypatch.setattr(listing, "SETTLED_NANOS", (filled - made) // 2)
    monkeypatch.setattr(time, "time_ns", lambda: filled)
    memory.plan(source, home)
    assert memory.folders == {"source": folder.stat().st_ctime_ns, "source/day=1": UNSEEN}
    write(folder, "day=1/b.json")
    assert paths(memory.plan(source, home).ranges) == [["day=1/b.json"]]
    later()
    memory.plan(source, home)
    assert memory.folders["source/day=1"] == (folder / "day=1").stat().st_ctime_ns
    assert memory.plan(source, home).seen_folders == ()


def test_folders_that_were_not_reached_are_looked_at_next_time(
    folder: Path, home: Path, source: FileSource, later: Later
) -> None:
    for day in range(4):
        write(folder, f"day={day}/a.json", records=10)
    later()
    memory = Memory()
    found = memory.plan(source, home, batch_records=10, enough=1)
    assert found.more
    assert paths(found.ranges) == [["day=0/a.json"]]
    while memory.plan(source, home, batch_records=10, enough=1).more:
        pass
    assert paths(memory.ranges) == [[f"day={day}/a.json"] for day in range(4)]


def test_a_consumed_folder_that_is_gone_is_no_problem(
    folder: Path, home: Path, source: FileSource, later: Later
) -> None:
    memory = Memory()
    for day in range(3):
        write(folder, f"day={day}/a.json")
    later()
    memory.plan(source, home)
    (folder / "day=1" / "a.json").unlink()
    (folder / "day=1").rmdir()
    for _ in range(3):
        later()
        found = memory.plan(source, home)
        assert (found.ranges, found.problem) == ((), None)
    write(folder, "day=1/new.json")
    assert paths(memory.plan(source, home).ranges) == [["day=1/new.json"]]


def test_a_file_in_the_place_of_a_consumed_folder_is_found(
    folder: Path, home: Path, source: FileSource, later: Later
) -> None:
    memory = Memory()
    write(folder, "day.json/a.json")
    later()
    memory.plan(source, home)
    (folder / "day.json" / "a.json").unlink()
    (folder / "day.json").rmdir()
    write(folder, "day.json")
    for _ in range(2):
        later()
        assert memory.plan(source, home).problem is None
    assert paths(memory.ranges) == [["day.json/a.json"], ["day.json"]]


def test_nothing_is_looked_up_for_unchanged_folders(folder: Path, home: Path, source: FileSource, later: Later) -> None:
    memory = Memory()
    for day in range(5):
        write(folder, f"day={day}/a.json")
    later()
    memory.plan(source, home)
    memory.asked.clear()
    write(folder, "day=3/b.json")
    memory.plan(source, home)
    assert memory.asked == ["source/day=3"]


def test_a_folder_that_does_not_exist_is_named(home: Path) -> None:
    with pytest.raises(SourceUnreadable, match=r"nowhere does not exist\.") as error:
        list(walk(home / "nowhere", JSON, {}))
    assert "FileSource" in error.value.next_step


def test_a_file_in_the_place_of_the_folder_is_named(home: Path) -> None:
    write(home, "file.json")
    with pytest.raises(SourceUnreadable, match=r"file\.json is not a folder"):
        list(walk(home / "file.json", JSON, {}))


@pytest.mark.parametrize("closed", ["in", "in/day", "."])
def test_a_folder_that_may_not_be_read_is_named(home: Path, folder: Path, closed: str) -> None:
    write(folder, "day/a.json")
    named = folder if closed == "." else home / closed
    with (
        without_rights(home / closed),
        pytest.raises(SourceUnreadable, match=f"{named} cannot be read: Permission denied") as error,
    ):
        list(walk(folder, JSON, {}))
    assert "right to read" in error.value.next_step


@pytest.mark.parametrize("name", [b"caf\xe9.json", b"caf\xe9"])
def test_a_name_that_is_not_utf_8_is_named(folder: Path, name: bytes) -> None:
    write(folder, "a.json")
    path = os.path.join(os.fsencode(folder), name)
    if name.endswith(b".json"):
        Path(os.fsdecode(path)).write_text("{}\n")
    else:
        os.mkdir(path)
    with pytest.raises(SourceUnreadable, match=r"b'caf\\xe9.*', a name that is not UTF-8"):
        list(walk(folder, JSON, {}))


def test_a_folder_says_what_is_in_it(folder: Path, later: Later) -> None:
    write(folder, "2024/01/a.json")
    later()
    modified = folder.stat().st_ctime_ns
    assert next(walk(folder, JSON, {})) == Folder("", (), modified, ("2024",))
