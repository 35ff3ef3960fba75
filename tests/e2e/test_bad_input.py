"""Bad input through the command line: one clear error, nothing lost, and once it is mended the truth."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.commands import Commands, commands_on
from tests.e2e.events import EACH, event, events, plan, write_files, write_json, write_parquet_files
from tests.e2e.home import Home, assert_true

DRAIN = ("drain", "page_views", "--batch-records", str(EACH), "--wait", "0")
Mend = Callable[[], Any]


def test_an_unknown_pipeline_is_named_with_the_nearest_one(commands: Commands) -> None:
    error = commands.bad("drain", "page_view", kind="UnknownPipeline")
    assert "'page_view'" in error["what"]
    assert "'page_views'" in error["next_step"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("select event_id, page, amount, at", "select event_id, page, amuont, at", "amuont"),
        ('sum_("amount")', 'sum_("amout")', "amout"),
        ("amount decimal(12,2)", "amount double", "amount"),
        ('record_id="event_id"', 'record_id="evnt_id"', "evnt_id"),
        ('    record_id="event_id",\n', "", "record_id"),
    ],
    ids=["unknown-column", "unknown-measure", "float-sum", "unknown-record-id", "no-record-id"],
)
def test_a_definition_that_cannot_run_is_refused_before_anything_is_made(
    commands: Commands, old: str, new: str, words: str
) -> None:
    commands.home.change("page_views", old, new)
    error = commands.bad(*DRAIN, kind="DefinitionError")
    assert words in error["what"]
    assert "page_views" in error["what"]
    assert not (commands.home.folder / "ledger.db").exists()


def no_folder(home: Home, _: pytest.MonkeyPatch) -> Mend:
    folder = home.data("page_views")
    folder.rename(home.folder / "elsewhere")
    return lambda: (home.folder / "elsewhere").rename(folder)


def a_file_for_a_folder(home: Home, monkeypatch: pytest.MonkeyPatch) -> Mend:
    put_back = no_folder(home, monkeypatch)
    folder = home.folder / "data" / "page_views"
    folder.write_text("")

    def mend() -> None:
        folder.unlink()
        put_back()

    return mend


def a_folder_without_rights(home: Home, monkeypatch: pytest.MonkeyPatch) -> Mend:
    """Root may read everything, so the system's answer is put into its mouth."""
    scandir = os.scandir

    def refuse(path: Any = ".") -> Any:
        if Path(os.fsdecode(path)) == home.data("page_views"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    return lambda: monkeypatch.setattr(os, "scandir", scandir)


def drifted(records: list[dict[str, Any]]) -> Callable[[Home, pytest.MonkeyPatch], Mend]:
    def damage(home: Home, _: pytest.MonkeyPatch) -> Mend:
        path = home.data("page_views") / "0.json"
        write_json(path, records)
        return lambda: write_json(path, events(0))

    return damage


def without(name: str) -> list[dict[str, Any]]:
    return [{key: value for key, value in record.items() if key != name} for record in events(0)]


def no_parquet_footer(home: Home, _: pytest.MonkeyPatch) -> Mend:
    path = write_parquet_files(home)[0]
    content = path.read_bytes()
    path.write_bytes(content[:-8])
    return lambda: path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "kind", "words"),
    [
        (no_folder, "SourceUnreadable", ["data/page_views", "does not exist"]),
        (a_file_for_a_folder, "SourceUnreadable", ["data/page_views", "is not a folder"]),
        (a_folder_without_rights, "SourceUnreadable", ["data/page_views", "Permission denied"]),
        (drifted([event(n, country="at") for n in range(EACH)]), "SchemaDrift", ["0.json", "'country'"]),
        (drifted(without("page")), "SchemaDrift", ["0.json", "'page'"]),
        (drifted([event(n, amount={"eur": 1}) for n in range(EACH)]), "SchemaDrift", ["0.json", "'amount'"]),
        (no_parquet_footer, "SourceUnreadable", ["0.parquet", "corrupt"]),
    ],
    ids=["no-folder", "a-file", "no-rights", "added-column", "dropped-column", "changed-column", "no-footer"],
)
def test_a_source_that_cannot_be_planned_is_named_and_planned_once_it_is_mended(
    commands: Commands, monkeypatch: pytest.MonkeyPatch, damage: Any, kind: str, words: list[str]
) -> None:
    home = commands.home
    if damage is not no_parquet_footer:
        write_files(home, 2)
    mend = damage(home, monkeypatch)
    error = commands.bad(*DRAIN, kind=kind)
    assert all(word in error["what"] for word in words), error
    mend()
    commands.good(*DRAIN)
    assert_true(home, "page_views", "side")
    assert len(home.read("page_views")) > 0


def test_what_comes_before_a_drifted_file_is_committed(commands: Commands) -> None:
    paths = write_files(commands.home)
    write_json(paths[1], without("at"))
    error = commands.bad(*DRAIN, kind="SchemaDrift")
    assert "1.json" in error["what"]
    assert "unaffected" in error["untouched"]
    assert commands.good("status", "page_views", "--json").data["frontier"] == 1


def removed(path: Path) -> None:
    path.unlink()


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def changed(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"e3", b"x3"))


@pytest.mark.parametrize("damage", [removed, truncated, changed])
def test_a_file_that_changed_after_planning_is_named_and_taken_once_it_is_back(commands: Commands, damage: Any) -> None:
    home = commands.home
    path = write_files(home)[0]
    content = path.read_bytes()
    assert plan(home) == 3
    damage(path)
    error = commands.bad(*DRAIN, kind="SourceChanged")
    assert str(path) in error["what"]
    assert "discard" in error["next_step"]
    assert commands.good("status", "page_views", "--json").data["frontier"] == 0
    path.write_bytes(content)
    commands.good(*DRAIN)
    assert_true(home, "page_views", "side")


def test_a_file_removed_while_it_is_read_is_a_changed_source(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    from twinstream.runtime.process import SparkProcessor

    path = write_files(commands.home, 1)[0]
    stage = SparkProcessor._stage

    def late(self: Any, *arguments: Any) -> Any:
        path.unlink(missing_ok=True)
        return stage(self, *arguments)

    monkeypatch.setattr(SparkProcessor, "_stage", late)
    error = commands.bad(*DRAIN, kind="SourceChanged")
    assert f"{path} is gone" in error["what"]


def test_a_txid_whose_file_is_gone_for_good_can_be_given_up(commands: Commands) -> None:
    home = commands.home
    path = write_files(home)[1]
    assert plan(home) == 3
    path.unlink()
    commands.bad(*DRAIN, kind="SourceChanged")
    commands.good("discard", "page_views", "--txid", "2", "--reason", "lost with its disk")
    commands.good(*DRAIN)
    counted = home.accounting("page_views")
    assert counted[2] == {
        "read": EACH,
        "dead": 0,
        "duplicate": 0,
        "filtered": 0,
        "late": 0,
        "emitted": 0,
        "discarded": EACH,
    }
    from tests.truth import truth_page_views

    left = [found for found in home.ranges("page_views") if found["txid"] != 2]
    assert home.read("page_views") == truth_page_views(left, "side").rows


def a_damaged_page(path: Path) -> None:
    import pyarrow.parquet as pq

    page = pq.ParquetFile(path).metadata.row_group(0).column(1).data_page_offset
    content = bytearray(path.read_bytes())
    content[page : page + 40] = b"\xff" * 40
    path.write_bytes(content)


def a_damaged_head(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[:60] = b"\x00" * 60
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [a_damaged_page, a_damaged_head])
def test_a_parquet_file_that_only_reading_finds_corrupt_is_named_and_can_be_given_up(
    commands: Commands, damage: Any
) -> None:
    home = commands.home
    path = write_parquet_files(home)[1]
    damage(path)
    error = commands.bad(*DRAIN, kind="SourceUnreadable")
    assert str(path) in error["what"]
    assert error["what"].startswith("Txid 2: ")
    status = commands.good("status", "page_views", "--json").data
    assert status["frontier"] == 1
    assert all(str(path) in attempt["error"] for attempt in status["attempts"] if attempt["outcome"] == "failed")
    commands.good("discard", "page_views", "--txid", "2", "--reason", "corrupt")
    commands.good(*DRAIN)
    assert [counted["discarded"] for counted in home.accounting("page_views").values()] == [0, EACH, 0]


def test_java_missing_is_said_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], spark: Any
) -> None:
    home = Home.make(tmp_path / "home", None)
    write_files(home, 1)
    with monkeypatch.context() as without_java:
        without_java.setenv("PATH", str(tmp_path))
        without_java.delenv("JAVA_HOME", raising=False)
        error = commands_on(home, without_java, capsys).bad(*DRAIN, kind="EnvironmentMissing")
    assert "Java" in error["what"]
    assert "doctor" in error["next_step"]
    home.spark = spark
    commands_on(home, monkeypatch, capsys).good(*DRAIN)
    assert_true(home, "page_views", "side")
