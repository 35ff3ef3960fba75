"""Leases: one runner at a time, by the database's clock, under epochs that only grow."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

import pytest
from sqlalchemy import text

from tests.unit.ledger.bench import Bench
from tests.unit.ledger.workers import at_once, attempt_all, compete
from twinstream.errors import Fenced, LeaseHeld
from twinstream.ledger import Ledger
from twinstream.ledger.leases import require
from twinstream.transaction import State


def test_a_lease_has_one_holder(bench: Bench) -> None:
    lease = bench.lease("one")
    assert lease.epoch == 1
    with pytest.raises(LeaseHeld, match=r"one is running this pipeline \(epoch 1\)") as held:
        bench.lease("two")
    assert "60 s" in held.value.next_step
    assert bench.ledger.leases.holder(bench.id) == ("one", 1, True)


def test_a_lease_that_ran_out_is_taken_over_under_a_higher_epoch(bench: Bench) -> None:
    bench.lease("one", 60)
    bench.clock.passes(59.9)
    with pytest.raises(LeaseHeld):
        bench.lease("two")
    bench.clock.passes(0.2)
    assert bench.ledger.leases.holder(bench.id) == ("one", 1, False)
    assert bench.lease("two").epoch == 2
    assert bench.journal() == [("take-over", None)]
    detail = str(bench.ledger.journal.newest(bench.id)[0]["detail"])
    assert "two (epoch 2)" in detail
    assert "one (epoch 1)" in detail


def test_renewing_extends_the_lease_from_now(bench: Bench) -> None:
    lease = bench.lease("one", 60)
    for _ in range(3):
        bench.clock.passes(50)
        bench.ledger.leases.renew(lease)
    with pytest.raises(LeaseHeld):
        bench.lease("two")


def test_a_lease_that_ran_out_can_be_renewed_as_long_as_no_one_took_it(bench: Bench) -> None:
    lease = bench.lease("one", 60)
    bench.clock.passes(600)
    bench.ledger.leases.renew(lease)
    with pytest.raises(LeaseHeld):
        bench.lease("two")


def test_whoever_lost_the_lease_is_fenced(bench: Bench) -> None:
    lost = bench.lease("one", 60)
    bench.clock.passes(61)
    kept = bench.lease("two")
    with pytest.raises(Fenced, match="epoch 1"):
        bench.ledger.leases.renew(lost)
    bench.ledger.leases.release(lost)
    bench.ledger.leases.renew(kept)
    assert bench.ledger.leases.holder(bench.id) == ("two", 2, True)


def test_a_released_lease_is_free_at_once_and_no_take_over(bench: Bench) -> None:
    bench.ledger.leases.release(bench.lease("one"))
    assert bench.lease("two").epoch == 2
    assert bench.journal() == []


def test_a_holder_known_to_be_dead_is_not_waited_for(bench: Bench) -> None:
    bench.lease("one")
    asked: list[str] = []

    def is_dead(holder: str) -> bool:
        asked.append(holder)
        return True

    assert bench.ledger.leases.acquire(bench.id, "two", 60, is_dead).epoch == 2
    assert asked == ["one"]


def test_a_clock_that_jumps_back_never_lowers_an_epoch(bench: Bench) -> None:
    bench.lease("one", 60)
    bench.clock.passes(61)
    bench.lease("two", 60)
    bench.clock.passes(-3600)
    with pytest.raises(LeaseHeld):
        bench.lease("three")
    bench.clock.passes(3600 + 61)
    assert bench.lease("three").epoch == 3


def test_a_take_over_abandons_running_attempts_and_plans_their_txids_again(bench: Bench) -> None:
    bench.plan_many(6)
    lease = bench.lease("one", 60)
    bench.commit(lease, 1, 1)
    done = bench.process(lease, 2, 3)
    running = bench.start(lease, 4, 5)
    bench.clock.passes(61)
    bench.lease("two")
    assert bench.states() == [
        State.COMMITTED, State.PROCESSED, State.PROCESSED, State.PLANNED, State.PLANNED, State.PLANNED,
    ]  # fmt: skip
    assert bench.outcomes(4) == ["abandoned"]
    assert [a.id for a in bench.ledger.attempts.to_clean(bench.id)] == [running.id]
    assert bench.ledger.attempts.find(done.id).staged is not None, "what is processed is not lost"
    assert [b.attempt for b in bench.ledger.batches.get(bench.id, 2, 5)] == [done.id, done.id, None, None]


def test_held_txids_stay_held_over_a_take_over(bench: Bench) -> None:
    bench.plan_many(1)
    lease = bench.lease("one", 60)
    bench.ledger.attempts.hold(lease, bench.process(lease, 1, 1), "too many nulls")
    bench.clock.passes(61)
    bench.lease("two")
    assert bench.states() == [State.HELD]


def test_leases_go_by_the_databases_clock_not_the_hosts(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    generation = ledger.generations.open("page_views", "hash", "{}").id
    ledger.leases.acquire(generation, "one", 30)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3600)
    with pytest.raises(LeaseHeld):
        ledger.leases.acquire(generation, "two", 30)


def test_the_databases_clock_is_utc_in_microseconds(ledger: Ledger) -> None:
    with ledger.database.read() as connection:
        if ledger.database.dialect == "postgresql":
            connection.execute(text("set local time zone 'Asia/Tokyo'"))
        assert abs(ledger.database.now(connection) - time.time() * 1e6) < 5e6


def test_a_lease_really_runs_out(ledger: Ledger) -> None:
    generation = ledger.generations.open("page_views", "hash", "{}").id
    ledger.leases.acquire(generation, "one", 0.2)
    deadline = time.monotonic() + 20
    while True:
        try:
            assert ledger.leases.acquire(generation, "two", 30).epoch == 2
            return
        except LeaseHeld:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_a_take_over_waits_for_a_transaction_that_relies_on_the_lease(ledger: Ledger) -> None:
    """Else the old runner's transaction could fence an attempt that the new one has just started."""
    generation = ledger.generations.open("page_views", "hash", "{}").id
    lease = ledger.leases.acquire(generation, "one", 30)
    taken = threading.Event()

    def take_over() -> None:
        ledger.leases.acquire(generation, "two", 30, is_dead=lambda _: True)
        taken.set()

    thread = threading.Thread(target=take_over)
    with ledger.database.write("test", generation) as connection:
        require(connection, lease)
        thread.start()
        assert not taken.wait(0.5)
    assert taken.wait(20)
    thread.join()
    with pytest.raises(Fenced), ledger.database.write("test", generation) as connection:
        require(connection, lease)


def test_four_runners_compete_and_one_holds_at_a_time(ledger_url: str) -> None:
    ledger = Ledger.open(ledger_url)
    generation = ledger.generations.open("page_views", "hash", "{}").id
    held = sorted(turn for turns in at_once(compete, ledger_url, generation, 2.0) for turn in turns)
    epochs = [epoch for epoch, _, _ in held]
    assert epochs == list(range(1, len(held) + 1)), "every epoch once"
    assert len(held) >= 8
    for (_, _, until), (_, since, _) in pairwise(held):
        assert until <= since, "two held the lease at the same time"
    ledger.close()


def test_runners_that_take_over_at_will_commit_every_txid_once(ledger_url: str) -> None:
    ledger = Ledger.open(ledger_url)
    bench = Bench.on(ledger)
    bench.plan_many(24)
    counts = at_once(attempt_all, ledger_url, bench.id, 24)
    # Nobody asks a sink here, so the last commit may come from a runner that another one has just taken over from:
    # what that one had begun by then is left to the next take-over, as after a kill.
    ledger.leases.acquire(bench.id, "the next one", 30.0, is_dead=lambda _: True)
    assert bench.states() == [State.COMMITTED] * 24
    assert bench.generation.frontier == 24
    for txid in range(1, 25):
        assert bench.outcomes(txid).count("committed") == 1
        assert "running" not in bench.outcomes(txid)
    assert ledger.batches.totals(bench.id)["read"] == 240
    assert sum(count["took"] for count in counts) > 3
    ledger.close()
