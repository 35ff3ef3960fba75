"""Whatever goes wrong, people get one clear message and programs an exit code; never a stack trace."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import twinstream.engine
from twinstream.errors import Refused


def fails_with(monkeypatch, error):
    def catalog(self):
        raise error

    monkeypatch.setattr(twinstream.engine.Engine, "catalog", property(catalog))


def test_bad_input_is_exit_code_2(run, write):
    write("visits")
    said = run("status", "vists")
    assert said.code == 2
    assert said.out == ""
    assert said.err.splitlines()[0].startswith("Unknown pipeline: There is no pipeline 'vists' in ")
    assert said.err.splitlines()[1:] == ["  Nothing was changed.", "  Did you mean 'visits'?"]


def test_a_refused_request_is_exit_code_1(run, monkeypatch):
    fails_with(monkeypatch, Refused("Not now.", untouched="All is as it was.", next_step="Wait."))
    said = run("status", "visits")
    assert said.code == 1
    assert said.err == "Refused: Not now.\n  All is as it was.\n  Wait.\n"


def test_a_fault_of_ours_is_exit_code_3_and_one_message(run, monkeypatch):
    fails_with(monkeypatch, ZeroDivisionError("division by zero\nand more"))
    said = run("status", "visits")
    assert said.code == 3
    assert said.err.splitlines()[0] == "Unexpected error: ZeroDivisionError: division by zero"
    assert "Traceback" not in said.err
    assert "TWINSTREAM_DEBUG=1" in said.err

    said = run("status", "visits", "--json")
    assert said.code == 3
    assert said.error["kind"] == "Unexpected"


def test_the_details_are_there_for_who_asks(run, monkeypatch):
    fails_with(monkeypatch, ZeroDivisionError("division by zero"))
    monkeypatch.setenv("TWINSTREAM_DEBUG", "1")
    from twinstream.cli.main import main

    with pytest.raises(ZeroDivisionError):
        main(["status", "visits"])


def test_programs_get_errors_as_json_on_standard_error(run, write):
    write("visits")
    said = run("status", "vists", "--json")
    assert said.code == 2
    assert said.out == ""
    assert said.error == {
        "kind": "UnknownPipeline",
        "what": said.error["what"],
        "untouched": "Nothing was changed.",
        "next_step": "Did you mean 'visits'?",
    }


@pytest.mark.parametrize(
    ("arguments", "message", "help_of"),
    [
        (["nosuch"], "No such command 'nosuch'.", "twinstream"),
        (["drain"], "Missing argument 'PIPELINE'.", "twinstream drain"),
        (["drain", "visits", "--bogus"], "No such option: --bogus", "twinstream drain"),
        (["generate", "visits", "--events", "many"], "Invalid value for '--events'", "twinstream generate"),
        (["generate", "visits", "--late", "2"], "Invalid value for '--late'", "twinstream generate"),
        (["ledger", "nosuch"], "No such command 'nosuch'.", "twinstream ledger"),
    ],
)
def test_a_command_line_that_cannot_be_understood_is_exit_code_2(run, arguments, message, help_of):
    said = run(*arguments)
    assert said.code == 2
    assert said.err.startswith(f"Usage: {message}")
    assert said.err.endswith(f"`{help_of} --help` shows how it is used.\n")

    said = run(*arguments, "--json")
    assert said.code == 2
    assert message in said.error["what"] or "--json" in said.error["what"]


def test_long_messages_and_odd_characters_are_not_touched(run, monkeypatch):
    text = "[red]x[/red] :key: " + "long " * 60 + "end"
    fails_with(monkeypatch, Refused(text, untouched=""))
    assert run("status", "visits").err == f"Refused: {text}\n"


def test_ctrl_c_is_said_and_has_its_own_exit_code(run, monkeypatch):
    fails_with(monkeypatch, KeyboardInterrupt())
    said = run("status", "visits")
    assert said.code == 130
    assert said.err.startswith("Stopped.")


def test_help_and_no_command_show_the_commands(run):
    said = run("--help")
    assert said.code == 0
    assert "Usage: twinstream" in said.out
    for command in ("list", "lint", "new", "doctor", "generate", "drain", "status", "read"):
        assert f" {command} " in said.out
    assert run().code == 2


@pytest.mark.parametrize(("arguments", "code"), [(["nosuch"], 2), (["--help"], 0)])
def test_a_process_that_ends_at_once_leaves_with_its_exit_code_and_all_that_it_said(arguments, code):
    program = (
        "import atexit, sys; atexit.register(print, 'tidied'); from twinstream.cli import run; print('x' * 100_000); "
        f"run({arguments})"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert said.returncode == code
    assert said.stdout.startswith("x" * 100_000)
    assert said.stdout.endswith("tidied\n")


def test_a_reader_that_goes_away_is_no_error(write, folder, tmp_path):
    for number in range(300):
        write(f"visits_{number}")
    settings = os.environ | {"TWINSTREAM_HOME": str(tmp_path / "home"), "TWINSTREAM_PIPELINES": str(folder)}
    command = subprocess.Popen(
        [sys.executable, "-m", "twinstream.cli", "lint", "--json"],
        env=settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert command.stdout is not None
    command.stdout.close()
    _, err = command.communicate()
    assert command.returncode == 0
    assert err == b""


def test_the_command_line_starts_without_what_is_slow_to_import():
    code = (
        "import sys, json, twinstream.cli\nprint(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    slow = {"pyspark", "sqlalchemy", "alembic", "sqlglot", "deltalake", "pyarrow", "pandas", "great_expectations"}
    assert slow & set(json.loads(done.stdout)) == set()
