"""Where pipelines stand, by the rows around the frontier: the same as a look at every row would say."""

from __future__ import annotations

from collections import Counter

from sqlalchemy import insert

from tests.unit.ledger.bench import SECOND, Bench, staged_for
from twinstream.ledger import standings as module
from twinstream.ledger.runs import Wanted
from twinstream.ledger.schema import journal
from twinstream.ledger.standings import Standing, standings
from twinstream.ledger.verdicts import history
from twinstream.ledger.windows import entries, failed, open_states, window
from twinstream.transaction import Outcome


def _standing(bench: Bench) -> Standing:
    now, found = standings(bench.ledger.database)
    assert now == bench.clock.now
    assert [one.pipeline for one in found] == ["page_views"]
    return found[0]


def test_a_pipeline_without_txids_has_a_standing(bench: Bench) -> None:
    found = _standing(bench)
    assert (found.frontier, found.last_txid, found.waiting_since, found.verdict, found.states) == (0, 0, None, None, {})


def test_open_txids_are_counted_by_state(bench: Bench) -> None:
    bench.plan_many(7)
    lease = bench.lease()
    bench.commit(lease, 1, 2)
    held = bench.process(lease, 3, 3)
    bench.ledger.attempts.hold(lease, held, "below zero")
    bench.process(lease, 4, 4)
    bench.start(lease, 5, 5)
    found = _standing(bench)
    assert (found.frontier, found.last_txid, found.runner, found.epoch) == (2, 7, "runner", 1)
    assert found.states == Counter(state.value for state in bench.states() if state != "COMMITTED")


def test_txids_that_are_not_looked_at_are_planned(bench: Bench, monkeypatch) -> None:
    monkeypatch.setattr(module, "LOOKED_AT", 3)
    bench.plan_many(9)
    bench.start(bench.lease(), 1, 2)
    assert _standing(bench).states == {"PROCESSING": 2, "PLANNED": 7}


def test_data_waits_since_the_oldest_open_txid_was_planned(bench: Bench) -> None:
    bench.plan_many(2)
    bench.commit(bench.lease(), 1, 2)
    bench.clock.passes(5)
    bench.plan_many(1)
    planned = bench.clock.now
    bench.clock.passes(50)
    bench.plan_many(1)
    assert _standing(bench).waiting_since == planned


def test_the_last_group_gives_the_throughput(bench: Bench) -> None:
    bench.plan_many(5)
    lease = bench.lease()
    bench.commit(lease, 1, 2)
    attempt = bench.start(lease, 3, 5)
    bench.clock.passes(4)
    bench.ledger.attempts.processed(lease, attempt, staged_for(attempt))
    bench.ledger.attempts.committed(bench.id, bench.manifests(attempt))
    found = _standing(bench)
    assert (found.group_records, found.group_micros) == (30, 4 * SECOND)


def test_only_the_newest_attempt_says_whether_a_txid_failed(bench: Bench) -> None:
    bench.plan_many(3)
    lease = bench.lease()
    for _ in range(2):
        bench.ledger.attempts.give_up(lease, bench.start(lease, 1, 1), Outcome.FAILED, "it is broken")
    assert _standing(bench).failure == "it is broken"
    assert failed(bench.ledger.database, bench.id, 0) == {1: "it is broken"}
    bench.start(lease, 1, 1)
    assert _standing(bench).failure is None
    assert failed(bench.ledger.database, bench.id, 0) == {}


def test_a_pipeline_is_paused_until_it_is_resumed(bench: Bench) -> None:
    bench.ledger.journal.add(bench.id, "paused", "the source moves")
    assert _standing(bench).paused == "the source moves"
    bench.ledger.journal.add(bench.id, "resumed", "it is there")
    assert _standing(bench).paused is None


def _reconcile(bench: Bench, verdict: str, scope: dict, counts: dict | None = None) -> int:
    run = bench.ledger.runs.start(Wanted(bench.id, "reconcile", 3, "h", scope), f"holder {bench.clock.now}", 60)
    bench.clock.passes(1)
    bench.ledger.runs.finish(run, {"verdict": verdict, "comparison": {"counts": counts or {}}})
    return run.id


def test_the_last_verdict_is_about_the_whole_result(bench: Bench) -> None:
    whole = _reconcile(bench, "different", {}, {"missing": 2, "late": 7})
    _reconcile(bench, "equal", {"where": "page = 1"})
    broken = bench.ledger.runs.start(Wanted(bench.id, "reconcile", 4, "h", {}), "another", 60)
    bench.ledger.runs.fail(broken, "no room")
    found = _standing(bench).verdict
    assert found is not None
    assert (found.id, found.verdict, found.differing, found.whole) == (whole, "different", 2, True)


def test_the_history_of_verdicts_is_newest_first_and_tells_of_failures(bench: Bench) -> None:
    ids = [_reconcile(bench, verdict, {"n": n}) for n, verdict in enumerate(("equal", "warning", "different"))]
    broken = bench.ledger.runs.start(Wanted(bench.id, "reconcile", 4, "h", {}), "another", 60)
    bench.ledger.runs.fail(broken, "no room")
    found = history(bench.ledger.database, "page_views", 3)
    assert [(one.id, one.verdict, one.error) for one in found] == [
        (broken.id, None, "no room"), (ids[2], "different", None), (ids[1], "warning", None),
    ]  # fmt: skip
    assert [one.id for one in history(bench.ledger.database, "page_views", 5, before=ids[1])] == [ids[0]]
    assert history(bench.ledger.database, "another_one", 3) == []


def test_a_window_has_the_txids_asked_for(bench: Bench) -> None:
    bench.plan_many(5)
    bench.commit(bench.lease(), 1, 3)
    rows = window(bench.ledger.database, bench.id, 2, 4)
    assert [(row.txid, row.state, row.emitted, row.dead) for row in rows] == [
        (2, "COMMITTED", 9, 1), (3, "COMMITTED", 9, 1), (4, "PLANNED", None, None),
    ]  # fmt: skip
    assert open_states(bench.ledger.database, bench.id, 3, 1) == {4: "PLANNED"}


def test_the_journal_of_a_txid_leaves_others_out(bench: Bench) -> None:
    with bench.ledger.database.write("made") as connection:
        for txid in (1, 2, 1):
            connection.execute(insert(journal).values(generation=bench.id, at=txid, kind="k", txid=txid, detail="d"))
    assert [one["at"] for one in entries(bench.ledger.database, bench.id, 1)] == [1, 1]
