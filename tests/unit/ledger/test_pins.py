"""Pins keep what readers need; removals remember what may be deleted, and from when on."""

from __future__ import annotations

import pytest

from tests.unit.ledger.bench import Bench


def test_the_lowest_pin_counts_while_it_is_held(bench: Bench) -> None:
    pins = bench.ledger.pins
    assert pins.lowest(bench.id) is None
    with pins.hold(bench.id, 7, "recompute"), pins.hold(bench.id, 3, "serve"):
        assert pins.lowest(bench.id) == 3
    assert pins.lowest(bench.id) is None


def test_a_pin_is_given_back_when_its_reader_fails(bench: Bench) -> None:
    def read() -> None:
        with bench.ledger.pins.hold(bench.id, 7, "recompute"):
            raise RuntimeError("reader failed")

    with pytest.raises(RuntimeError, match="reader failed"):
        read()
    assert bench.ledger.pins.lowest(bench.id) is None


def test_a_pin_whose_reader_died_runs_out(bench: Bench) -> None:
    with bench.ledger.pins.hold(bench.id, 3, "serve", seconds=60):
        bench.clock.passes(59)
        assert bench.ledger.pins.lowest(bench.id) == 3
        bench.clock.passes(2)
        assert bench.ledger.pins.lowest(bench.id) is None


def test_pins_belong_to_their_generation(bench: Bench) -> None:
    other = bench.ledger.generations.open("orders", "hash", "{}").id
    with bench.ledger.pins.hold(other, 1, "serve"):
        assert bench.ledger.pins.lowest(bench.id) is None


def test_a_removal_waits_for_its_time(bench: Bench) -> None:
    pins = bench.ledger.pins
    pins.remove_later(bench.id, ["a.parquet", "b.parquet"], 60)
    assert pins.to_delete(bench.id) == []
    bench.clock.passes(60)
    assert sorted(pins.to_delete(bench.id)) == ["a.parquet", "b.parquet"]
    pins.deleted(bench.id, ["a.parquet"])
    assert pins.to_delete(bench.id) == ["b.parquet"]


def test_a_removal_that_is_logged_again_keeps_its_first_time(bench: Bench) -> None:
    """A crash between logging and removing repeats the logging."""
    pins = bench.ledger.pins
    pins.remove_later(bench.id, ["a.parquet"], 60)
    bench.clock.passes(30)
    pins.remove_later(bench.id, ["a.parquet", "b.parquet"], 60)
    bench.clock.passes(30)
    assert pins.to_delete(bench.id) == ["a.parquet"]
