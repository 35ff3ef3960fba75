"""A range must still hold what was planned: the same files, with the same content."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.permissions import without_rights
from tests.unit.sources.history import Later, Memory, write
from twinstream.errors import SourceChanged
from twinstream.sources import files
from twinstream.sources.base import Places
from twinstream.sources.files import FileSource
from twinstream.transaction import Range


@pytest.fixture
def planned(folder: Path, home: Path, source: FileSource, later: Later) -> Range:
    """A range of two files that have been there for a while."""
    write(folder, "a.json", 3)
    write(folder, "day/b.json", 3)
    later()
    (range_,) = Memory().plan(source, home).ranges
    assert len(range_.hints) == 2
    return Range.from_dict(range_.to_dict())


def test_what_did_not_change_is_not_even_read(
    planned: Range, home: Path, source: FileSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(path: Path) -> str:
        raise AssertionError(f"{path} was read")

    monkeypatch.setattr(files, "fingerprint", never)
    source.verify(Places(home), planned)


def test_a_removed_file_is_named(planned: Range, home: Path, folder: Path, source: FileSource) -> None:
    (folder / "day" / "b.json").unlink()
    with pytest.raises(SourceChanged, match=r"day/b\.json is gone") as error:
        source.verify(Places(home), planned)
    assert "committed" in error.value.untouched
    assert "twinstream discard" in error.value.next_step


def test_a_truncated_file_is_named(planned: Range, home: Path, folder: Path, source: FileSource) -> None:
    path = folder / "a.json"
    size = path.stat().st_size
    os.truncate(path, size - 5)
    with pytest.raises(SourceChanged, match=rf"a\.json had {size} bytes and has {size - 5} now"):
        source.verify(Places(home), planned)


def test_a_file_that_grew_is_named(planned: Range, home: Path, folder: Path, source: FileSource) -> None:
    with (folder / "a.json").open("a") as file:
        file.write("{}\n")
    with pytest.raises(SourceChanged, match="bytes and has"):
        source.verify(Places(home), planned)


@pytest.mark.parametrize("pretend", [False, True])
def test_other_content_of_the_same_size_is_named(
    planned: Range, home: Path, folder: Path, source: FileSource, pretend: bool
) -> None:
    path = folder / "a.json"
    before = path.stat()
    path.write_text(path.read_text().replace('"amount": 1', '"amount": 7'))
    if pretend:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    with pytest.raises(SourceChanged, match=r"a\.json has other content than when it was planned"):
        source.verify(Places(home), planned)


def test_a_change_right_after_planning_shows_too(home: Path, folder: Path, source: FileSource) -> None:
    """Size and times may be the very same if both came within one tick of the clock."""
    path = write(folder, "a.json", 3)
    (range_,) = Memory().plan(source, home).ranges
    before = path.stat()
    path.write_text(path.read_text().replace('"amount": 1', '"amount": 7'))
    range_ = Range(range_.payload, range_.records, range_.size, range_.claims, dict(range_.hints))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(SourceChanged):
        source.verify(Places(home), range_)


def test_a_touched_file_with_the_same_content_is_fine(
    planned: Range, home: Path, folder: Path, source: FileSource
) -> None:
    os.utime(folder / "a.json")
    (folder / "a.json").chmod(0o600)
    source.verify(Places(home), planned)


def test_a_file_that_was_replaced_by_its_copy_is_fine(
    planned: Range, home: Path, folder: Path, source: FileSource
) -> None:
    path = folder / "a.json"
    copy = path.read_bytes()
    path.unlink()
    path.write_bytes(copy)
    source.verify(Places(home), planned)


def test_a_file_that_may_not_be_read_any_more_is_named(
    planned: Range, home: Path, folder: Path, source: FileSource
) -> None:
    os.utime(folder / "a.json")
    with without_rights(folder / "a.json"), pytest.raises(SourceChanged, match=r"a\.json cannot be read any more"):
        source.verify(Places(home), planned)


def test_other_files_of_the_folder_do_not_matter(planned: Range, home: Path, folder: Path, source: FileSource) -> None:
    write(folder, "c.json")
    source.verify(Places(home), planned)
