"""Who asked for an attempt or a run can be looked up; what people asked for stays in the journal."""

from __future__ import annotations

from tests.unit.ledger.bench import Bench
from twinstream.ledger.runs import Wanted

MINE = {"dag_id": "views__drain", "run_id": "manual_1% é\"'", "task_id": "drain", "map_index": "-1"}


def test_attempts_are_found_by_what_all_tries_of_a_task_have_in_common(bench: Bench) -> None:
    bench.plan_many(4)
    lease = bench.lease()
    starts = [
        bench.ledger.attempts.start(lease, txid, txid, f"staging/{txid}", context)
        for txid, context in enumerate(
            ({**MINE, "try_number": "1"}, {**MINE, "run_id": "other"}, {**MINE, "try_number": "2"}, None), start=1
        )
    ]
    found = bench.ledger.attempts.asked_by(bench.id, MINE)
    assert [attempt.id for attempt in found] == [starts[0].id, starts[2].id]
    assert bench.ledger.attempts.asked_by(bench.id, {**MINE, "dag_id": "VIEWS__DRAIN"}) == []
    assert len(bench.ledger.attempts.asked_by(bench.id, {})) == 4


def test_a_run_that_is_taken_over_belongs_to_whoever_took_it(bench: Bench) -> None:
    runs = bench.ledger.runs
    wanted = Wanted(bench.id, "recompute", 3, "hash", {})
    first = runs.start(wanted, "one", 60, context={**MINE, "run_id": "old"})
    runs.fail(first, "killed")
    again = runs.start(wanted, "two", 60, context=MINE)
    assert again.id == first.id
    assert [run.id for run in runs.asked_by("recompute", MINE)] == [first.id]
    assert runs.asked_by("recompute", {**MINE, "run_id": "old"}) == []
    assert runs.asked_by("repair", MINE) == []


def test_the_newest_entry_of_a_kind_is_the_one_that_counts(bench: Bench) -> None:
    journal = bench.ledger.journal
    assert journal.last(bench.id, ("paused", "resumed")) is None
    for kind, why in (("paused", "moving"), ("other", "something"), ("resumed", "moved"), ("other", "else")):
        journal.add(bench.id, kind, why)
    found = journal.last(bench.id, ("paused", "resumed"))
    assert found is not None
    assert (found["kind"], found["detail"]) == ("resumed", "moved")
