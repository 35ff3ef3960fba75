from __future__ import annotations

import pytest

from twinstream.ledger import Ledger


@pytest.fixture
def examine(run):
    """Runs the doctor without Spark and gives its exit code and its checks by name."""

    def call():
        said = run("doctor", "--no-spark", "--json")
        return said.code, {check["name"]: check for check in said.data["checks"]}

    return call


def java_of(tmp_path, monkeypatch, words):
    """A JAVA_HOME whose java says these words."""
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{words}' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))


def test_a_ready_machine_passes(examine, write):
    write("visits")
    code, checks = examine()
    assert code == 0
    names = ["python", "packages", "java", "environment", "jars", "home", "ledger", "pipelines", "spark"]
    assert list(checks) == names
    assert {name for name in names if checks[name]["state"] != "ok"} == {"spark"}
    assert checks["spark"]["state"] == "skipped"
    assert "not made yet" in checks["ledger"]["found"]


def test_people_see_each_check_and_the_verdict(run, write):
    write("visits")
    said = run("doctor", "--no-spark")
    assert said.code == 0
    assert said.out.splitlines()[0].startswith("ok       python       3.")
    assert said.err == "Everything that is needed is there.\n"


def test_what_fails_says_how_to_mend_it(run, write):
    write("half", text="pipeline = 7")
    said = run("doctor", "--no-spark")
    assert said.code == 2
    assert "failed   pipelines    broken in " in said.out
    assert "→ `twinstream lint` says what is wrong." in said.out
    assert said.err == "1 of 9 checks failed.\n"


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ('openjdk version "17.0.15" 2026-04-15', "ok"),
        ('openjdk version "21" 2023-09-19', "ok"),
        ('openjdk version "11.0.2" 2019-01-15', "failed"),
        ('java version "1.8.0_392"', "failed"),
        ("Unrecognized option", "failed"),
    ],
)
def test_java_must_be_17_or_newer(examine, tmp_path, monkeypatch, words, state):
    java_of(tmp_path, monkeypatch, words)
    _, checks = examine()
    assert checks["java"]["state"] == state
    assert bool(checks["java"]["mend"]) == (state == "failed")


def test_a_java_home_without_java_is_named(examine, tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    code, checks = examine()
    assert code == 2
    assert str(tmp_path / "gone") in checks["java"]["found"]
    assert "unset" in checks["java"]["mend"]


def test_no_java_at_all(examine, tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    code, checks = examine()
    assert code == 2
    assert checks["java"]["found"] == "not found"
    assert "openjdk-17" in checks["java"]["mend"]


def test_spark_connect_needs_neither_java_nor_jars(examine, write, tmp_path, monkeypatch):
    write("visits")
    monkeypatch.setenv("TWINSTREAM_MASTER", "sc://cluster:15002/;token=secret")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("TWINSTREAM_JARS", raising=False)
    code, checks = examine()
    assert code == 0
    assert checks["java"]["state"] == checks["jars"]["state"] == "skipped"
    assert "secret" not in str(checks)


def test_another_spark_is_a_warning(examine, write, tmp_path, monkeypatch):
    write("visits")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    code, checks = examine()
    assert code == 0
    assert checks["environment"]["state"] == "warning"
    assert checks["environment"]["mend"] == "unset SPARK_HOME"


def test_missing_jars_are_mended_by_setup(examine, write, tmp_path, monkeypatch):
    write("visits")
    monkeypatch.setenv("TWINSTREAM_JARS", str(tmp_path / "jars"))
    code, checks = examine()
    assert code == 0
    assert checks["jars"]["state"] == "warning"
    assert checks["jars"]["mend"] == "Run bin/setup."


def test_a_home_that_cannot_be_written_is_named(examine, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TWINSTREAM_HOME", str(tmp_path / "file" / "home"))
    code, checks = examine()
    assert code == 2
    assert checks["home"]["state"] == checks["ledger"]["state"] == "failed"
    assert "TWINSTREAM_HOME" in checks["home"]["mend"]


def test_little_room_is_a_warning_and_no_room_a_failure(examine, write, monkeypatch):
    write("visits")
    for free, state in ((3 * 1024**3, "warning"), (1024**2, "failed")):
        monkeypatch.setattr("shutil.disk_usage", lambda _, free=free: type("Usage", (), {"free": free}))
        assert examine()[1]["home"]["state"] == state


def test_the_ledger_is_shown_with_its_version_and_without_its_password(examine, write, tmp_path, monkeypatch):
    write("visits")
    (tmp_path / "home").mkdir()
    Ledger.open(f"sqlite:///{tmp_path}/home/ledger.db").close()
    assert ", version 0" in examine()[1]["ledger"]["found"]

    monkeypatch.setenv("TWINSTREAM_LEDGER_URL", "postgresql://me:secret@127.0.0.1:1/none")
    code, checks = examine()
    assert code == 2
    assert checks["ledger"]["state"] == "failed"
    assert "secret" not in str(checks)
    assert "me:***@" in checks["ledger"]["found"]


@pytest.mark.parametrize("url", ["nonsense", "mysql://x/y"])
def test_an_address_that_is_none_fails(examine, monkeypatch, url):
    monkeypatch.setenv("TWINSTREAM_LEDGER_URL", url)
    code, checks = examine()
    assert code == 2
    assert "sqlite:" in checks["ledger"]["mend"]


def test_a_setting_that_makes_no_sense_fails(examine, monkeypatch):
    monkeypatch.setenv("TWINSTREAM_LEASE_SECONDS", "soon")
    code, checks = examine()
    assert code == 2
    assert "TWINSTREAM_LEASE_SECONDS" in checks["settings"]["found"]


def test_spark_waits_for_what_it_needs(run, tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    said = run("doctor", "--json")
    assert said.code == 2
    assert said.data["checks"][-1] == {
        "name": "spark",
        "state": "skipped",
        "found": "not before java is mended",
        "mend": "",
    }


@pytest.mark.parametrize("master", ["sc://127.0.0.1:1", "sc://127.0.0.1:1/;token=secret", "sc://127.0.0.1:none"])
def test_a_connect_server_that_is_not_there_is_said_at_once(run, write, monkeypatch, master):
    write("visits")
    monkeypatch.setenv("TWINSTREAM_MASTER", master)
    said = run("doctor", "--json")
    assert said.code == 2
    assert said.data["checks"][-1]["state"] == "failed"
    assert "nobody answers at sc://127.0.0.1" in said.data["checks"][-1]["found"]
    assert "secret" not in said.out
