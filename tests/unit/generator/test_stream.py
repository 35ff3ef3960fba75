"""Shares, order of event time, duplicates and late records."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

START = datetime(2026, 1, 1, tzinfo=UTC)


def records(generated):
    return [json.loads(line) for path in generated.files for line in path.read_text(encoding="utf-8").splitlines()]


def moment(record, column="at"):
    return datetime.fromisoformat(record[column])


def test_without_shares_every_record_is_good_and_unique(make):
    generated = make(events=25_000)
    found = records(generated)
    assert (generated.events, generated.duplicates, generated.late, generated.poison) == (25_000, 0, 0, 0)
    assert len(found) == len({record["event_id"] for record in found}) == 25_000


@pytest.mark.parametrize("share", ["duplicates", "late", "poison"])
def test_a_share_is_kept_within_tolerance(make, share):
    generated = make(events=50_000, **{share: 0.03})
    assert getattr(generated, share) == pytest.approx(1_500, rel=0.1)


def test_event_time_grows_with_a_jitter_of_at_most_five_seconds(make):
    for index, record in enumerate(records(make(events=20_000, rate=50))):
        off = moment(record) - START - timedelta(seconds=index / 50)
        assert timedelta(0) <= off <= timedelta(seconds=5)


def test_late_records_are_older_by_once_to_twice_the_lateness(make):
    generated = make(events=20_000, late=0.02, lateness=timedelta(hours=3))
    behind = [
        START + timedelta(seconds=index / 100) - moment(record)
        for index, record in enumerate(records(generated))
        if moment(record) < START + timedelta(seconds=index / 100)
    ]
    assert len(behind) == generated.late > 0
    assert timedelta(hours=2, minutes=59) < min(behind) < timedelta(hours=3, minutes=10)
    assert timedelta(hours=5, minutes=50) < max(behind) <= timedelta(hours=6)


def test_a_duplicate_is_a_whole_record_again_later_and_also_in_later_files(make):
    generated = make(events=20_000, duplicates=0.05, events_per_file=1_000)
    lines = [(path, line) for path in generated.files for line in path.read_text(encoding="utf-8").splitlines()]
    ids = Counter(json.loads(line)["event_id"] for _, line in lines)
    assert sum(ids.values()) - len(ids) == generated.duplicates > 0
    assert len({line for _, line in lines}) == len(ids)
    first: dict = {}
    assert any(first.setdefault(line, path) != path for path, line in lines)


def test_all_duplicates_are_one_record_over_and_over(make):
    generated = make(events=100, duplicates=1)
    assert generated.duplicates == 99
    assert len({record["event_id"] for record in records(generated)}) == 1


def test_by_default_no_event_time_is_in_the_future_and_the_newest_is_recent(make):
    found = records(make(events=5_000, start=None))
    newest = max(map(moment, found))
    now = datetime.now(UTC)
    assert now - timedelta(minutes=2) < newest < now - timedelta(seconds=50)


def test_progress_is_told_the_records_written_so_far(make):
    seen: list[int] = []
    make(events=25_000, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 25_000
