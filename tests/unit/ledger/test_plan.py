"""The plan: gapless txids, ranges that never change, names that belong to one txid only."""

from __future__ import annotations

import pytest

from tests.unit.ledger.bench import SECOND, Bench, files, txids
from tests.unit.ledger.workers import at_once, plan_all
from twinstream.ledger import Ledger, Planned, PlanRaced
from twinstream.transaction import Range, State


def test_txids_are_one_two_three_without_a_gap(bench: Bench) -> None:
    assert bench.plan("a.json", "b.json") == range(1, 3)
    assert bench.plan("c.json") == range(3, 4)
    assert bench.generation.last_txid == 3
    assert bench.states() == [State.PLANNED] * 3


def test_a_planned_range_comes_back_as_it_was(bench: Bench) -> None:
    wanted = files("day=1/ä b.json", "day=1/c.json", records=7)
    bench.ledger.batches.plan(bench.id, 0, [Planned(wanted, exempt=True)], "hash")
    (batch,) = bench.ledger.batches.get(bench.id, 1, 1)
    assert batch.range == wanted
    assert batch.range_digest == wanted.digest
    assert (batch.exempt, batch.waived, batch.attempt) == (True, False, None)
    assert batch.batch_time == bench.clock.now


def test_hints_are_not_part_of_what_a_range_is(bench: Bench) -> None:
    one = files("a.json")
    other = Range(one.payload, one.records, one.size, one.claims, hints={"a.json": [9, 9, 9]})
    assert one.digest == other.digest


def test_a_planner_that_was_slower_logs_nothing(bench: Bench) -> None:
    bench.plan("a.json")
    with pytest.raises(PlanRaced):
        bench.ledger.batches.plan(bench.id, 0, [Planned(files("b.json"))], "hash", [("source", 5)])
    assert bench.generation.last_txid == 1
    assert bench.ledger.batches.claim_of(bench.id, "source/b.json") is None
    assert bench.ledger.batches.known_folders(bench.id) == {}


def test_a_name_belongs_to_one_txid_only(bench: Bench) -> None:
    bench.plan("day/a.json", "day/b.json")
    with pytest.raises(PlanRaced):
        bench.ledger.batches.plan(bench.id, 2, [Planned(files("day/c.json", "day/b.json"))], "hash")
    assert bench.generation.last_txid == 2
    assert bench.ledger.batches.claimed(bench.id, "source/day") == {"a.json", "b.json"}
    assert bench.ledger.batches.claim_of(bench.id, "source/day/b.json") == 2
    assert bench.ledger.batches.claim_of(bench.id, "source/day/c.json") is None


def test_generations_claim_names_independently(bench: Bench) -> None:
    bench.plan("a.json")
    other = bench.ledger.generations.build("page_views", "new", "{}")
    assert bench.ledger.batches.plan(other.id, 0, [Planned(files("a.json"))], "new") == range(1, 2)


def test_folders_are_remembered_with_the_plan_and_the_newest_time_counts(bench: Bench) -> None:
    plan = bench.ledger.batches.plan
    plan(bench.id, 0, [Planned(files("day/a.json"))], "hash", [("source", 10), ("source/day", 20)])
    assert plan(bench.id, 1, [], "hash", [("source/day", 30)]) == range(2, 2)
    assert bench.ledger.batches.known_folders(bench.id) == {"source": 10, "source/day": 30}
    assert bench.generation.last_txid == 1


def test_what_people_bring_back_is_told_in_the_journal(bench: Bench) -> None:
    back = Range({"place": "reinjected"}, 1, 1, claims=("reinjected/x.json",))
    bench.plan("a.json")
    bench.ledger.batches.plan(bench.id, 1, [Planned(back)], "hash", why=("reinjected", "mended by hand"))
    assert bench.journal() == [("reinjected", 2)]
    assert txids(bench.ledger.batches.reinjected(bench.id)) == [2]


def test_open_batches_and_backlog_leave_out_what_is_committed(bench: Bench) -> None:
    bench.plan_many(3)
    bench.clock.passes(60)
    bench.plan_many(2)
    bench.commit(bench.lease(), 1, 2)
    assert txids(bench.ledger.batches.open(bench.id)) == [3, 4, 5]
    assert txids(bench.ledger.batches.open(bench.id, limit=2)) == [3, 4]
    assert bench.ledger.batches.backlog(bench.id) == (3, 30, 300, bench.clock.now - 60 * SECOND)
    bench.commit(bench.lease_again(), 3, 5)
    assert bench.ledger.batches.backlog(bench.id) == (0, 0, 0, None)


def test_totals_add_up_committed_records_by_class(bench: Bench) -> None:
    bench.plan_many(3)
    assert bench.ledger.batches.totals(bench.id)["read"] == 0
    bench.commit(bench.lease(), 1, 2)
    totals = bench.ledger.batches.totals(bench.id)
    assert totals["read"] == 20
    assert (totals["emitted"], totals["dead"], totals["late"], totals["rows_out"]) == (18, 2, 0, 18)


def test_four_planners_at_once_claim_every_name_exactly_once(ledger_url: str) -> None:
    ledger = Ledger.open(ledger_url)
    generation = ledger.generations.open("page_views", "hash", "{}").id
    names = [f"{number:03}.json" for number in range(150)]
    found = at_once(plan_all, ledger_url, generation, names)
    won = sorted(txid for txids, _ in found for txid in txids)
    assert won == list(range(1, len(names) + 1)), "gapless, and each txid won by one planner"
    planned = ledger.batches.get(generation, 1, len(names))
    assert sorted(claim for batch in planned for claim in batch.range.claims) == [f"source/day/{n}" for n in names]
    for batch in planned:
        assert ledger.batches.claim_of(generation, batch.range.claims[0]) == batch.txid
    assert ledger.generations.get(generation).last_txid == len(names)
    ledger.close()
