"""Draining gives the truth, whatever the batch size, the group size and the state of the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.home import Home, assert_true

EVENTS = 40_000


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Home:
    """Events with repeated, late and broken records, in files small enough for small batches."""
    home = Home.make(tmp_path_factory.mktemp("events"), spark)
    options = {"late": 0.02, "poison": 0.002, "duplicates": 0.01, "events_per_file": 500}
    home.generate("page_views", EVENTS, rate=10.0, **options)
    home.generate("orders", EVENTS // 2, rate=2.0, **options)
    return home


def fresh(events: Home, folder: Path) -> Home:
    """The same events in a home of their own."""
    home = Home.make(folder, events.spark)
    (folder / "data").symlink_to(events.folder / "data")
    return home


def aside(home: Home, kind: str) -> int:
    """How many records were put aside."""
    return sum(row["occurrences"] for row in home.engine().read_aside("page_views", kind).collect())


@pytest.mark.parametrize("batch_records", [1_000, 7_000, 1_000_000])
def test_page_views_are_the_truth_for_every_batch_size(events: Home, tmp_path: Path, batch_records: int) -> None:
    home = fresh(events, tmp_path)
    home.drain("page_views", batch_records=batch_records)
    assert_true(home, "page_views", "side")
    late = sum(counted["late"] for counted in home.accounting("page_views").values())
    assert (late > 0) == (batch_records < EVENTS)
    assert aside(home, "late") == late
    assert aside(home, "dead") == sum(counted["dead"] for counted in home.accounting("page_views").values()) > 0


def test_group_sizes_agree_in_every_row(events: Home, tmp_path: Path) -> None:
    results, accountings = [], []
    for group in (3, 7, 1_000_000):
        home = fresh(events, tmp_path / str(group))
        home.drain("page_views", batch_records=2_000, group=group)
        results.append(home.read("page_views"))
        accountings.append(home.accounting("page_views"))
    assert results[0] == results[1] == results[2]
    assert accountings[0] == accountings[1] == accountings[2]


def test_with_late_kept_batch_sizes_agree_too(events: Home, tmp_path: Path) -> None:
    results = []
    for batch_records in (4_000, 1_000_000):
        home = fresh(events, tmp_path / str(batch_records))
        home.change("page_views", 'late="side"', 'late="keep"')
        home.drain("page_views", batch_records=batch_records)
        assert_true(home, "page_views", "keep")
        results.append(home.read("page_views"))
    assert results[0] == results[1]


@pytest.mark.parametrize("batch_records", [1_500, 1_000_000])
def test_orders_are_the_truth(events: Home, tmp_path: Path, batch_records: int) -> None:
    home = fresh(events, tmp_path)
    home.drain("orders", batch_records=batch_records)
    assert_true(home, "orders", "drop")


def test_a_second_drain_changes_nothing(events: Home, tmp_path: Path) -> None:
    home = fresh(events, tmp_path)
    home.drain("page_views", batch_records=10_000)
    before = home.read("page_views")
    again = home.drain("page_views")
    assert again.txids == 0
    assert again.epoch is None, "nothing to do: not even the lease is taken"
    assert home.read("page_views") == before


def test_results_as_of_every_txid_are_the_truth_of_that_txid(events: Home, tmp_path: Path) -> None:
    home = fresh(events, tmp_path)
    home.drain("page_views", batch_records=10_000, max_batches=2)
    home.engine().fold("page_views")
    home.drain("page_views", batch_records=10_000)
    from tests import truth

    ranges = home.ranges("page_views")
    for txid in (1, 2, len(ranges)):
        expected = truth.truth_page_views(ranges[:txid], "side")
        assert home.read("page_views", as_of=txid) == sorted(tuple(row) for row in expected.rows)
