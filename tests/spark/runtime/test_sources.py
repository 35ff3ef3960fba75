"""Every shape a source folder can have gives the truth: Parquet, folders by date, compression, odd names, nothing."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.commands import Commands, commands_on
from tests.e2e.events import EACH, event, events, write_json, write_parquet_files
from tests.e2e.home import Home, assert_true
from twinstream.sources import read_files

DRAIN = ("drain", "page_views", "--batch-records", str(EACH), "--wait", "0")
NAMES = [
    "a b", "a%20b", "a%b", "100%", "a#b", "a'b", 'a"b', "a&b;c,d", "a+b=c@d!$()", "a^b`|<>~", "back\\slash",
    "ünï", "e\u0301", "日本", "😀", "no\u00a0break", "line\u2028end", "soft\u00adhyphen", "tab\tbed", "two\nlines",
    "a[1]", "a1", "b*", "bx", "c?", "cx", "d{x,y}", "dx", "e]f", "date=2026-01-01/x", "date=%20/y z", "[x]/{y}",
]  # fmt: skip


def test_a_parquet_source_gives_the_truth(commands: Commands) -> None:
    home = commands.home
    paths = write_parquet_files(home, 4)
    paths[0].rename(paths[0].with_name("9.parquet"))
    (home.folder / "as-json" / "0.json").rename(home.folder / "as-json" / "9.json")
    commands.good(*DRAIN)
    assert_true(home, "page_views", "side")
    counted = home.accounting("page_views")
    assert [found["late"] > 0 for found in counted.values()] == [False, False, False, True]


def test_folders_by_date_compressed_and_empty_files_give_the_truth(commands: Commands) -> None:
    home = commands.home
    folder = home.data("page_views")
    write_json(folder / "2026" / "01" / "01" / "0.json", events(0))
    write_json(folder / "date=2026-01-02" / "1.json", events(1))
    write_json(folder / "empty.json", [])
    write_json(home.folder / "as-json" / "2.json", events(2))
    with gzip.open(folder / "2.json.gz", "wt") as file:
        file.write((home.folder / "as-json" / "2.json").read_text())
    write_json(folder / ".hidden.json", events(3))
    write_json(folder / "_temporary" / "3.json", events(3))
    commands.good(*DRAIN)
    assert_true(home, "page_views", "side")
    assert sum(found["read"] for found in home.accounting("page_views").values()) == 3 * EACH

    write_json(folder / "2026" / "01" / "03" / "4.json", events(4))
    commands.good(*DRAIN)
    assert_true(home, "page_views", "side")
    assert sum(found["read"] for found in home.accounting("page_views").values()) == 4 * EACH


def test_a_folder_of_nothing_but_empty_files_moves_the_frontier(commands: Commands) -> None:
    (commands.home.data("page_views") / "empty.json").write_text("\n  \n")
    said = commands.good(*DRAIN, "--json").data
    assert (said["txids"], said["records"], said["frontier"]) == (1, 0, 1)
    assert commands.home.read("page_views") == []


def test_an_empty_folder_is_nothing_to_do(commands: Commands) -> None:
    commands.home.data("page_views")
    said = commands.good(*DRAIN)
    assert said.err.startswith("Nothing to do")


def test_odd_names_of_files_and_of_the_home_give_the_truth(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Home.make(tmp_path / "my home [1] #é* 100%", spark)
    for number, name in enumerate(NAMES):
        write_json(home.data("page_views") / f"{name}.json", [event(0, event_id=name, page=name, amount=str(number))])
    write_json(home.data("page_views") / "broken 'é[1]'.json", [event(1, amount="none")])
    commands = commands_on(home, monkeypatch, capsys)
    commands.good("drain", "page_views", "--batch-records", "10", "--wait", "0")
    assert_true(home, "page_views", "side")
    assert len(home.read("page_views")) == len(NAMES)
    assert "broken 'é[1]'.json" in commands.good("dead", "page_views").out
    before = home.read("page_views")
    commands.good("fold", "page_views")
    assert home.read("page_views") == before


def test_names_are_hashed_as_spark_does_it(spark: Any) -> None:
    names = [*NAMES, "", "x" * 200, "file:/" + "/".join(NAMES)]
    rows = spark.createDataFrame([(name,) for name in names], "name string").selectExpr("name", "xxhash64(name)")
    assert dict(rows.collect()) == {name: read_files.hash_of(name) for name in names}


def test_files_whose_names_have_one_hash_are_told_apart(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_files, "hash_of", lambda _name: 7)
    for number in range(read_files.A_HANDFUL + 1):
        write_json(commands.home.data("page_views") / f"{number}.json", events(number))
    commands.good(*DRAIN)
    assert_true(commands.home, "page_views", "side")


def test_a_home_whose_name_the_table_format_misreads_is_refused(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Home.make(tmp_path / "my%20home", spark)
    write_json(home.data("page_views") / "0.json", events(0))
    error = commands_on(home, monkeypatch, capsys).bad(*DRAIN, kind="SettingsError")
    assert "my%20home" in error["what"]


def test_a_name_that_spark_cannot_read_is_refused_before_it_is_planned(commands: Commands) -> None:
    path = commands.home.data("page_views") / "2026-01-01T00:00.json"
    write_json(path, events(0))
    error = commands.bad(*DRAIN, kind="SourceUnreadable")
    assert path.name in error["what"]
    assert "Rename" in error["next_step"]
    path.rename(path.with_name("2026-01-01T0000.json"))
    commands.good(*DRAIN)
    assert_true(commands.home, "page_views", "side")
