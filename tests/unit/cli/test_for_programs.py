"""A program that runs a command for people learns what came of it, and says who asked."""

from __future__ import annotations

import json

import pytest

from twinstream.errors import SettingsError
from twinstream.settings import Settings


def test_the_result_is_in_the_file_that_was_named_whatever_people_see(run, write, tmp_path, monkeypatch):
    write("visits")
    file = tmp_path / "result.json"
    monkeypatch.setenv("TWINSTREAM_RESULT", str(file))
    said = run("status", "visits")
    assert said.code == 0
    assert not said.out.startswith("{")
    assert json.loads(file.read_text())["result"]["pipeline"] == "visits"


def test_so_is_an_error(run, write, tmp_path, monkeypatch):
    file = tmp_path / "result.json"
    monkeypatch.setenv("TWINSTREAM_RESULT", str(file))
    assert run("status", "nothing").code == 2
    assert json.loads(file.read_text())["error"]["kind"] == "UnknownPipeline"


def test_who_asked_is_a_flat_json_object() -> None:
    assert Settings.from_env({"TWINSTREAM_CONTEXT": '{"dag_id": "a", "try_number": 2}'}).context == {
        "dag_id": "a",
        "try_number": "2",
    }
    assert Settings.from_env({}).context == {}
    for text in ("[1]", "nonsense", '"text"'):
        with pytest.raises(SettingsError, match="TWINSTREAM_CONTEXT"):
            Settings.from_env({"TWINSTREAM_CONTEXT": text})
