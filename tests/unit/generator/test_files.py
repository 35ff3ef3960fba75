"""Files appear whole and are never overwritten; what cannot be done is said in a sentence."""

import errno
import tracemalloc
from datetime import UTC, datetime, timedelta

import pytest

from twinstream.errors import DiskFull, Refused, SettingsError
from twinstream.generator import json_form


def test_files_hold_the_asked_number_of_events_under_plain_names(make, tmp_path):
    generated = make(events=2_500, events_per_file=1_000)
    assert [path.name for path in generated.files] == [f"events-20260101T000000Z-7-00000{n}.json" for n in (1, 2, 3)]
    assert [len(path.read_bytes().splitlines()) for path in generated.files] == [1_000, 1_000, 500]
    assert sorted(tmp_path.rglob("*.json")) == list(generated.files)
    assert not list(tmp_path.rglob(".*"))


def test_nested_files_lie_in_a_folder_of_their_date(make, tmp_path):
    generated = make(events=6_000, rate=0.05, events_per_file=500, nested=True)
    folders = [path.parent.relative_to(tmp_path / "events").as_posix() for path in generated.files]
    assert folders[0] == "2026-01-01"
    assert folders[-1] == "2026-01-02"
    assert folders == sorted(folders)


def test_a_second_call_with_the_same_seed_and_start_is_refused_and_changes_nothing(make):
    files = make().files
    before = [path.read_bytes() for path in files]
    with pytest.raises(Refused, match="exists already"):
        make(events=2_000, poison=0.5)
    assert [path.read_bytes() for path in files] == before


def test_a_name_taken_far_into_the_run_is_seen_before_anything_is_written(make, tmp_path):
    taken = tmp_path / "events" / "events-20260101T000000Z-7-000003.json"
    taken.parent.mkdir()
    taken.write_text("mine")
    with pytest.raises(Refused):
        make(events=3_000, events_per_file=1_000)
    assert list(tmp_path.rglob("*.json")) == [taken]
    assert taken.read_text() == "mine"


def test_a_file_that_came_in_between_is_not_overwritten(make, tmp_path):
    taken = tmp_path / "events" / "events-20260101T000000Z-7-000002.json"

    def interfere(written: int) -> None:
        if not taken.exists():
            taken.write_text("mine")

    with pytest.raises(Refused):
        make(events=30_000, events_per_file=15_000, progress=interfere)
    assert taken.read_text() == "mine"
    assert not list(tmp_path.rglob(".*"))


@pytest.mark.parametrize("format", ["json", "parquet"])
def test_a_hidden_file_of_another_run_is_left_alone(make, tmp_path, format):
    other = tmp_path / "events" / f".events-20260101T000000Z-7-000001.{format}.tmp"
    other.parent.mkdir()
    other.write_text("theirs")
    with pytest.raises(Refused, match="another run is writing"):
        make(format=format)
    assert other.read_text() == "theirs"


def test_unfinished_files_are_hidden_and_finished_ones_are_whole(make, tmp_path):
    seen = []

    def look(written: int) -> None:
        seen.append([path.name for path in sorted((tmp_path / "events").iterdir())])

    make(events=25_000, events_per_file=15_000, progress=look)
    assert seen[0] == [".events-20260101T000000Z-7-000001.json.tmp"]
    assert seen[1] == [".events-20260101T000000Z-7-000002.json.tmp", "events-20260101T000000Z-7-000001.json"]


def test_an_interruption_leaves_only_whole_files(make, tmp_path):
    def stop(written: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(events=25_000, events_per_file=6_000, progress=stop)
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in left] == ["events-20260101T000000Z-7-000001.json"]
    assert len(left[0].read_bytes().splitlines()) == 6_000


def test_a_full_disk_is_named(make, monkeypatch, tmp_path):
    def full(self: object, records: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    # A real full disk needs a file system of its own.
    monkeypatch.setattr(json_form._Lines, "write", full)
    with pytest.raises(DiskFull, match="0 finished files stay"):
        make()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_folder_that_cannot_be_made_is_named(make, tmp_path):
    (tmp_path / "events").write_text("a file where the folder should be")
    with pytest.raises(SettingsError, match="Cannot write"):
        make()


@pytest.mark.parametrize(
    "wrong",
    [
        {"poison": -0.1},
        {"late": 1.1},
        {"late": 0.6, "duplicates": 0.6},
        {"events": -1},
        {"events_per_file": 0},
        {"rate": 0},
        {"lateness": timedelta(seconds=-1)},
        {"format": "csv"},
    ],
)
def test_senseless_numbers_are_refused(make, wrong):
    with pytest.raises(SettingsError):
        make(**wrong)


def test_no_events_make_no_files(make):
    generated = make(events=0)
    assert (generated.files, generated.events, generated.bytes) == ((), 0, 0)


def test_a_start_with_a_fraction_of_a_second_shows_it_in_the_name(make):
    generated = make(start=datetime(2026, 1, 1, 0, 0, 0, 1_000, tzinfo=UTC))
    assert generated.files[0].name == "events-20260101T000000.001000Z-7-000001.json"


def peak(make, folder: str, events: int, events_per_file: int) -> int:
    tracemalloc.start()
    try:
        make(folder, events=events, events_per_file=events_per_file, duplicates=0.01, late=0.01, poison=0.01)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_number_of_events_nor_with_the_size_of_a_file(make):
    little = peak(make, "little", 20_000, 2_000)
    much = peak(make, "much", 200_000, 2_000)
    one_file = peak(make, "one", 60_000, 60_000)
    assert max(much, one_file) < 1.2 * little < 40_000_000
