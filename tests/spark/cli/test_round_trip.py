from __future__ import annotations

import pytest

from twinstream.cli import round_trip


def test_rows_go_from_spark_through_the_committer_and_back(spark, tmp_path):
    check = round_trip.round_trip(spark, tmp_path)
    assert check.state == "ok", check.found
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_only_spark_can_see_is_noticed(spark, tmp_path, monkeypatch):
    write = round_trip._write
    monkeypatch.setattr(round_trip, "_write", lambda spark, folder: write(spark, tmp_path / "elsewhere" / folder.name))
    check = round_trip.round_trip(spark, tmp_path / "home")
    assert check.state == "failed"
    assert "cannot be seen from here" in check.found
    assert "TWINSTREAM_HOME" in check.mend


def test_a_file_that_shrank_on_the_way_is_noticed(spark, tmp_path, monkeypatch):
    from twinstream.runtime import staging

    look = staging.staged_files

    def damaged(table, folder):
        files = look(table, folder)
        (table / files[0].path).write_bytes(b"")
        return files

    monkeypatch.setattr(staging, "staged_files", damaged)
    check = round_trip.round_trip(spark, tmp_path)
    assert check.state == "failed"
    assert check.found.startswith("StagedFileMissing: ")


def test_a_spark_that_cannot_write_is_a_finding_and_not_a_crash(spark, tmp_path):
    (tmp_path / "file").write_text("")
    check = round_trip.round_trip(spark, tmp_path / "file")
    assert check.state == "failed"
    assert "\n" not in check.found


@pytest.fixture(autouse=True)
def without_leftovers(tmp_path):
    yield
    assert list(tmp_path.glob("**/.doctor-*")) == []
