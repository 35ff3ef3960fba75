"""The command line in this process, on the run's own Spark: one command costs no more than what it does."""

from __future__ import annotations

import functools
import json
import os
import sys
from dataclasses import dataclass
from typing import Any

import pytest

import twinstream.engine
from tests.e2e.home import Home
from twinstream.cli.main import main
from twinstream.spark import quiet

TRACES = ("Traceback", "at org.apache", "Py4J", "java.lang", "An error occurred while calling")


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
    def error(self) -> dict[str, str]:
        return json.loads(self.err.strip().splitlines()[-1])["error"]


@dataclass(frozen=True)
class Commands:
    """Runs commands on one home."""

    home: Home
    capsys: pytest.CaptureFixture[str]

    def run(self, *arguments: str) -> Said:
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        captured = self.capsys.readouterr()
        return Said(int(ended.value.code or 0), captured.out, captured.err)

    def good(self, *arguments: str) -> Said:
        said = self.run(*arguments)
        assert said.code == 0, said.err
        return said

    def bad(self, *arguments: str, kind: str, code: int = 2) -> dict[str, str]:
        """Runs a command that must fail with one clear error, and returns it."""
        said = self.run(*arguments, "--json")
        assert said.code == code, said
        assert said.out == ""
        return clear(said.err, kind)


def clear(text: str, kind: str) -> dict[str, str]:
    """The one error in what a command said: its cause, what was left untouched and the next step, and no trace."""
    assert not any(trace in text for trace in TRACES), text
    lines = text.strip().splitlines()
    assert len(lines) == 1, text
    error: dict[str, str] = json.loads(lines[0])["error"]
    assert error["kind"] in kind.split(" or "), error
    assert all(error[part].strip() for part in ("what", "untouched", "next_step")), error
    return error


def commands_on(home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    """The command line with this home's settings, and with the run's Spark instead of one of its own."""
    for name in [name for name in os.environ if name.startswith("TWINSTREAM_") and name != "TWINSTREAM_JARS"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TWINSTREAM_HOME", str(home.folder))
    monkeypatch.setenv("TWINSTREAM_PIPELINES", str(home.pipelines))
    # Loading definitions puts their folder there.
    monkeypatch.setattr(sys, "path", list(sys.path))
    quiet()
    if home.spark is not None:
        monkeypatch.setattr(twinstream.engine, "Engine", functools.partial(twinstream.engine.Engine, spark=home.spark))
    return Commands(home, capsys)
