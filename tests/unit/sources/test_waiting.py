"""What is waiting in a source: all that no txid has, by names alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.sources.history import Memory, write
from twinstream.errors import SourceUnreadable
from twinstream.sources.base import Places
from twinstream.sources.files import FileSource


def test_only_what_no_txid_has_is_waiting(folder: Path, home: Path, source: FileSource) -> None:
    history = Memory()
    for name in ("a.json", "day=1/b.json", "day=1/c.json"):
        write(folder, name)
    write(folder, ".hidden.json")
    write(folder, "notes.txt")
    assert source.waiting(Places(home), history) == 3
    history.plan(source, home)
    assert source.waiting(Places(home), history) == 0
    write(folder, "day=1/d.json")
    write(folder, "day=2/e.json")
    assert source.waiting(Places(home), history) == 2


def test_content_is_not_looked_at(folder: Path, home: Path, source: FileSource) -> None:
    write(folder, "a.json").write_bytes(b"\x00 no JSON at all")
    assert source.waiting(Places(home), Memory()) == 1


def test_a_folder_that_is_not_there_is_an_error(folder: Path, home: Path, source: FileSource) -> None:
    folder.rmdir()
    with pytest.raises(SourceUnreadable, match="does not exist"):
        source.waiting(Places(home), Memory())
