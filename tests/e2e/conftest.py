"""A home with the example pipelines, and the command line on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.commands import Commands, commands_on
from tests.e2e.home import Home


@pytest.fixture(autouse=True, scope="module")
def _as_in_production(compiled: None) -> None:
    """The truth is compared with what users would get."""


@pytest.fixture
def commands(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Commands:
    return commands_on(Home.make(tmp_path / "home", spark), monkeypatch, capsys)
