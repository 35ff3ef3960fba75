from __future__ import annotations

import pytest


def test_a_new_pipeline_lints_and_can_be_generated_at_once(run, folder, tmp_path):
    said = run("new", "sales", "--json")
    assert said.code == 0
    assert said.data["file"] == str(folder / "sales.py")
    assert said.data["next"] == [
        "twinstream lint sales",
        "twinstream generate sales",
        "twinstream drain sales",
        "twinstream read sales --limit 10",
    ]
    linted = run("lint", "sales", "--json")
    assert linted.code == 0
    assert linted.data["pipelines"][0]["warnings"] == []
    assert "max_future" in (folder / "sales.py").read_text()
    made = run("generate", "sales", "--events", "500", "--late", "0.1", "--json")
    assert made.code == 0
    assert made.data["events"] == 500
    assert len(list((tmp_path / "home" / "data" / "sales").glob("*.json"))) == 1


def test_people_are_told_what_to_do_next(run, folder):
    said = run("new", "sales")
    assert said.err.splitlines()[0] == f"Wrote {folder / 'sales.py'}. Next:"
    assert "  twinstream drain sales" in said.err.splitlines()


def test_the_folder_of_definitions_is_made_where_it_is_missing(run, folder):
    folder.rmdir()
    assert run("new", "sales").code == 0
    assert (folder / "sales.py").exists()


def test_an_existing_file_is_never_overwritten(run, folder):
    (folder / "sales.py").write_text("# mine\n")
    said = run("new", "sales")
    assert said.code == 1
    assert said.err.startswith("Refused: ")
    assert (folder / "sales.py").read_text() == "# mine\n"


def test_a_name_that_another_file_has_taken_is_refused(run, write, folder):
    write("visits", {'name="visits"': 'name="sales"'})
    said = run("new", "sales", "--json")
    assert said.code == 1
    assert said.error["kind"] == "Refused"
    assert "visits.py defines a pipeline sales already" in said.error["what"]
    assert not (folder / "sales.py").exists()


@pytest.mark.parametrize("name", ["Sales", "1st", "a-b", "../sales", "a__b", "", "sales.py", "x" * 101, "größe"])
def test_a_name_that_cannot_be_a_pipelines_is_bad_input(run, folder, name):
    said = run("new", name)
    assert said.code == 2
    assert said.err.startswith("Definition error: The pipeline name ")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["json", "class", "pyspark", "twinstream"])
def test_a_name_that_would_hide_a_module_is_bad_input(run, folder, name):
    said = run("new", name, "--json")
    assert said.code == 2
    assert f"{name}_events" in said.error["next_step"]
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(run, folder, monkeypatch):
    folder.rmdir()
    folder.write_text("a file, not a folder")
    said = run("new", "sales")
    assert said.code == 1
    assert str(folder) in said.err
