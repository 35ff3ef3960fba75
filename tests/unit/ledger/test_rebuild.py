"""Rebuilding a ledger that is lost or older than the sink from the sink's manifests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import insert, select, update

from tests.unit.ledger.bench import Bench, content, files, manifest_of
from twinstream.errors import Fenced, LeaseHeld, LedgerSinkMismatch
from twinstream.ledger import Ledger
from twinstream.ledger.rebuild import rebuild
from twinstream.ledger.schema import batches, generations
from twinstream.transaction import Batch, Manifest, State


def nobody_lives(holder: str) -> bool:
    return True


def test_a_lost_ledger_is_brought_up_to_the_sink(bench: Bench, tmp_path: Path) -> None:
    bench.plan_many(4)
    lease = bench.lease()
    manifests = bench.commit(lease, 1, 2) + bench.commit(lease, 3, 3)
    new = Ledger.open(f"sqlite:///{tmp_path / 'new.db'}", clock=bench.clock)
    again = Bench(new, bench.clock, new.generations.adopt("page_views", 1, "abcd", "hash", "{}"))
    assert rebuild(new.database, again.id, manifests, 1, nobody_lives) == 3
    assert (again.generation.frontier, again.generation.last_txid, again.generation.watermark) == (3, 3, 2900)
    for then, now in zip(bench.ledger.batches.get(bench.id, 1, 3), new.batches.get(again.id, 1, 3), strict=True):
        assert replace(now, attempt=then.attempt) == then
    assert new.batches.claimed(again.id, "source/day") == {"000000.json", "000001.json", "000002.json"}
    assert new.batches.totals(again.id) == bench.ledger.batches.totals(bench.id)
    assert again.lease().epoch == 2
    assert again.journal() == [("rebuilt", 3)]
    new.close()


def test_an_older_ledger_keeps_what_it_has_and_forgets_what_was_only_planned(bench: Bench) -> None:
    bench.plan_many(2)
    lease = bench.lease()
    done = bench.commit(lease, 1, 1)
    bench.plan("other/a.json", "other/b.json")
    sink = [*done, *(_in_the_sink(bench, txid, f"day/{txid - 1:06}.json") for txid in (2, 3))]
    assert rebuild(bench.ledger.database, bench.id, sink, 7, nobody_lives) == 2
    assert bench.states() == [State.COMMITTED] * 3
    assert bench.ledger.batches.claimed(bench.id, "source/other") == set()
    assert bench.ledger.batches.claim_of(bench.id, "source/day/000001.json") == 2
    assert bench.ledger.batches.known_folders(bench.id) == {}
    assert bench.plan("other/a.json") == range(4, 5)


def test_a_live_runner_is_not_pulled_away_from_under(bench: Bench) -> None:
    bench.plan_many(1)
    bench.lease()
    before = content(bench.ledger.database)
    with pytest.raises(LeaseHeld):
        rebuild(bench.ledger.database, bench.id, [], 3)
    assert content(bench.ledger.database) == before


def test_the_runner_before_is_fenced_and_epochs_never_go_back(bench: Bench) -> None:
    bench.plan_many(1)
    for _ in range(4):
        bench.ledger.leases.release(bench.lease())
    lease = bench.lease()
    assert lease.epoch == 5
    rebuild(bench.ledger.database, bench.id, [], 3, nobody_lives)
    with pytest.raises(Fenced):
        bench.start(lease, 1, 1)
    assert bench.lease().epoch == 6, "epoch 5 was given away before, whatever the sink has seen of it"
    rebuild(bench.ledger.database, bench.id, [], 20, nobody_lives)
    assert bench.lease().epoch == 21


def test_staged_files_that_the_sink_names_are_never_left_to_the_cleaner(bench: Bench) -> None:
    """The backup was made while the attempt ran; it committed, and the ledger was restored from that backup."""
    bench.plan_many(3)
    lease = bench.lease("one", 60)
    running, done, lost = bench.start(lease, 1, 1), bench.process(lease, 2, 2), bench.start(lease, 3, 3)
    sink = [
        replace(manifest, files=(f"{attempt.staging}/_kind=partial/part.parquet",))
        for attempt in (running, done)
        for manifest in bench.manifests(attempt)
    ]
    bench.clock.passes(61)
    bench.lease("two")
    rebuild(bench.ledger.database, bench.id, sink, 1, nobody_lives)
    assert [attempt.id for attempt in bench.ledger.attempts.to_clean(bench.id)] == [lost.id]
    assert (bench.outcomes(1), bench.outcomes(2), bench.outcomes(3)) == (["committed"], ["committed"], ["abandoned"])


def test_a_rebuild_is_repeatable(bench: Bench) -> None:
    bench.plan_many(3)
    manifests = bench.commit(bench.lease(), 1, 2)
    rebuild(bench.ledger.database, bench.id, manifests, 1, nobody_lives)
    before = content(bench.ledger.database)
    assert rebuild(bench.ledger.database, bench.id, manifests, 1, nobody_lives) == 0
    after = content(bench.ledger.database)
    assert {name: rows for name, rows in after.items() if name != "journal"} == {
        name: rows for name, rows in before.items() if name != "journal"
    }


@pytest.mark.parametrize("difference", ["missing", "another range"])
def test_a_sink_that_lost_what_the_ledger_committed_is_not_rebuilt_from(bench: Bench, difference: str) -> None:
    bench.plan_many(2)
    one, two = bench.commit(bench.lease(), 1, 2)
    before = content(bench.ledger.database)
    sink = [one] if difference == "missing" else [one, replace(two, range_digest="another")]
    with pytest.raises(LedgerSinkMismatch, match="txid 2"):
        rebuild(bench.ledger.database, bench.id, sink, 1, nobody_lives)
    assert content(bench.ledger.database) == before


def test_a_sink_with_a_hole_is_not_rebuilt_from(bench: Bench) -> None:
    bench.plan_many(3)
    one, _, three = bench.manifests(bench.process(bench.lease(), 1, 3))
    with pytest.raises(LedgerSinkMismatch, match="2 of 3 manifests"):
        rebuild(bench.ledger.database, bench.id, [one, three], 1, nobody_lives)


def test_a_long_history_is_rebuilt(ledger: Ledger) -> None:
    """More committed txids than a statement may have parameters."""
    bench = Bench.on(ledger)
    bench.plan("day/a.json")
    one = ledger.batches.get(bench.id, 1, 1)[0]
    with ledger.database.write("test") as connection:
        row = connection.execute(select(batches)).one()._mapping
        connection.execute(
            insert(batches),
            [{**row, "txid": txid, "state": State.COMMITTED} for txid in range(2, 70_001)],
        )
        connection.execute(update(batches).where(batches.c.txid == 1).values(state=State.COMMITTED))
        connection.execute(update(generations).values(last_txid=70_000, frontier=70_000))
    manifest = manifest_of(one, 1, 1)
    sink = [replace(manifest, txid=txid) for txid in range(1, 70_001)]
    later = _in_the_sink(bench, 70_001, "day/b.json")
    assert rebuild(ledger.database, bench.id, [*sink, later], 1, nobody_lives) == 1
    assert bench.generation.frontier == 70_001
    assert ledger.batches.claimed(bench.id, "source/day") == {"a.json", "b.json"}


def _in_the_sink(bench: Bench, txid: int, path: str) -> Manifest:
    """A manifest of a txid that this ledger does not know, or knows otherwise."""
    range_ = files(path)
    return manifest_of(Batch(txid, State.COMMITTED, range_, range_.digest, bench.clock.now), 99, 6)
