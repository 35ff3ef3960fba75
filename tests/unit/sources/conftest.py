"""A folder to be listed, and a source that reads it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.unit.sources.history import Later
from twinstream.sources.files import FileSource


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path


@pytest.fixture
def folder(home: Path) -> Path:
    return home / "in"


@pytest.fixture
def source() -> FileSource:
    return FileSource("in", schema="id string, amount int")


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    """Moves the host's clock on, by an hour unless told."""

    def move(seconds: float = 3600) -> None:
        now = time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: now() + int(seconds * 1e9))

    return move
