"""One seed and one start give the same bytes; what is only layout changes no record."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

SHARES = {"duplicates": 0.05, "late": 0.05, "poison": 0.05}


def content(generated):
    return b"".join(path.read_bytes() for path in generated.files)


@pytest.mark.parametrize("format", ["json", "parquet"])
def test_the_same_seed_and_start_give_the_same_files(make, format):
    one, two = (make(folder, events=12_345, format=format, **SHARES) for folder in ("one", "two"))
    assert [path.name for path in one.files] == [path.name for path in two.files]
    assert [path.read_bytes() for path in one.files] == [path.read_bytes() for path in two.files]
    assert one.bytes == two.bytes == sum(path.stat().st_size for path in one.files)


def test_another_seed_gives_other_records(make):
    assert content(make("one", seed=1)) != content(make("two", seed=2))


def test_another_start_gives_other_ids_so_that_runs_can_share_a_folder(make):
    one = make(seed=1)
    two = make(seed=1, start=datetime(2026, 1, 2, tzinfo=UTC))
    ids = [line.split(b'"')[3] for line in (content(one) + content(two)).splitlines()]
    assert len(ids) == len(set(ids)) == 2_000


def test_records_do_not_depend_on_how_they_are_cut_into_files(make):
    whole = make("whole", events=25_000, events_per_file=25_000, **SHARES)
    small = make("small", events=25_000, events_per_file=777, **SHARES)
    assert (len(whole.files), len(small.files)) == (1, 33)
    assert content(whole) == content(small)


def test_fewer_events_are_the_beginning_of_more(make):
    assert content(make("more", events=25_000, **SHARES)).startswith(content(make("fewer", events=12_345, **SHARES)))


def test_a_share_of_poison_leaves_the_other_records_as_they_are(make):
    clean = content(make("clean")).splitlines()
    poisoned = content(make("poisoned", poison=0.1)).splitlines()
    same = sum(one == two for one, two in zip(clean, poisoned, strict=True))
    assert 850 < same < 950


def test_a_start_without_a_zone_is_utc_and_another_zone_is_converted(make):
    naive = make("naive", start=datetime(2026, 1, 1))  # noqa: DTZ001 - the point of the test
    zoned = make("zoned", start=datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))))
    assert content(naive) == content(zoned) == content(make("utc"))
