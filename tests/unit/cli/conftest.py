"""Runs the command line in this process, in a home and a pipelines folder of the test's own."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from twinstream.cli.main import main

GOOD = """
    from twinstream import Aggregate, DeltaSink, FileSource, Pipeline, count, fixed

    pipeline = Pipeline(
        name="{name}",
        source=FileSource("data/{name}", schema="id string, page string, amount double, at timestamp"),
        record_id="id",
        event_time="at",
        prepare="select id, page, amount, at from events",
        operator=Aggregate(by=["page"], window=fixed("1 minute"), measures={{"views": count()}}),
        sink=DeltaSink("tables/{name}"),
    )
"""


@dataclass(frozen=True)
class Said:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        return json.loads(self.err)["error"]


Run = Callable[..., Said]
Write = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "pipelines"
    made.mkdir()
    return made


@pytest.fixture
def run(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    for name in [name for name in os.environ if name.startswith("TWINSTREAM_") and name != "TWINSTREAM_JARS"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TWINSTREAM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TWINSTREAM_PIPELINES", str(folder))
    # Loading definitions puts their folder there.
    monkeypatch.setattr(sys, "path", list(sys.path))

    def call(*arguments: str) -> Said:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        captured = capsys.readouterr()
        return Said(int(ended.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture
def write(folder: Path) -> Write:
    """Writes a definition that is sound, or the text that is given."""

    def call(name: str, changes: dict[str, str] | None = None, *, text: str = "") -> Path:
        source = textwrap.dedent(text or GOOD.format(name=name))
        for old, new in (changes or {}).items():
            assert old in source
            source = source.replace(old, new)
        file = folder / f"{name}.py"
        file.write_text(source)
        return file

    return call
