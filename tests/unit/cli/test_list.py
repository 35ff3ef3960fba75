from __future__ import annotations

from twinstream.catalog import load_catalog
from twinstream.ledger import Ledger

NOT_PYTHON = "pipeline = Pipeline(\n"


def test_each_pipeline_is_listed_with_what_it_is_made_of(run, write):
    write("visits")
    said = run("list", "--json")
    (entry,) = said.data["pipelines"]
    assert said.code == 0
    assert entry["pipeline"] == "visits"
    assert entry["mode"] == "micro-batch"
    assert entry["guarantee"] == "exactly-once"
    assert entry["source"] == "files:data/visits"
    assert entry["sink"] == "delta:tables/visits"
    assert entry["generation"] is None
    assert entry["frontier"] is None


def test_a_broken_file_is_listed_apart_and_hides_no_other(run, write):
    write("visits")
    write("half", text=NOT_PYTHON)
    said = run("list", "--json")
    assert said.code == 0
    assert [entry["pipeline"] for entry in said.data["pipelines"]] == ["visits"]
    (broken,) = said.data["broken"]
    assert broken["file"].endswith("half.py")
    assert "half.py, line 1: SyntaxError" in broken["error"]["what"]


def test_people_see_a_table_and_what_is_broken_below_it(run, write):
    write("visits")
    write("half", text=NOT_PYTHON)
    lines = run("list").out.splitlines()
    assert lines[0].split() == ["pipeline", "mode", "guarantee", "source", "sink", "generation", "frontier"]
    assert (
        lines[1].split()
        == ["visits", "micro-batch", "exactly-once", "files:data/visits", "delta:tables/visits"] + ["–"] * 2
    )
    assert lines[3] == "broken (1):"
    assert lines[4].startswith("  half.py, line 1: SyntaxError")


def test_listing_makes_no_ledger(run, write, tmp_path):
    write("visits")
    run("list")
    assert not (tmp_path / "home").exists()


def test_the_ledger_says_how_far_a_pipeline_is(run, write, folder, tmp_path):
    write("visits")
    write("other")
    (tmp_path / "home").mkdir()
    ledger = Ledger.open(f"sqlite:///{tmp_path}/home/ledger.db")
    definition = load_catalog(folder).get("visits")
    ledger.generations.open("visits", definition.hash, "{}")
    ledger.close()

    by_name = {entry["pipeline"]: entry for entry in run("list", "--json").data["pipelines"]}
    assert by_name["visits"]["generation"] == 1
    assert by_name["visits"]["frontier"] == 0
    assert by_name["visits"]["definition_changed"] is False
    assert by_name["other"]["generation"] is None

    write("visits", {"1 minute": "2 minutes"})
    assert run("list", "--json").data["pipelines"][1]["definition_changed"] is True
    assert "1 (definition changed)" in run("list").out


def test_a_ledger_that_cannot_be_read_does_not_keep_the_list_from_being_shown(run, write, tmp_path):
    write("visits")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "ledger.db").write_text("this is no database, however long it is" * 100)
    said = run("list", "--json")
    assert said.code == 0
    assert said.data["pipelines"][0]["pipeline"] == "visits"
    assert said.data["ledger_error"]["kind"] == "LedgerError"
    said = run("list")
    assert "visits" in said.out
    assert said.err.startswith("The ledger could not be read: ")


def test_an_empty_folder_is_not_an_error(run):
    said = run("list")
    assert said.code == 0
    assert "twinstream new NAME" in said.err
    assert run("list", "--json").data["pipelines"] == []


def test_a_missing_folder_is(run, folder):
    folder.rmdir()
    said = run("list")
    assert said.code == 2
    assert said.err.startswith("Unknown pipeline: The pipelines folder ")
