"""Attempts: logged before they start, fenced by higher ones, committed in txid order and only once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.ledger.bench import Bench, staged_for, txids
from twinstream.errors import Fenced, LedgerSinkMismatch
from twinstream.transaction import Accounting, Outcome, State, Tally

PLANNED, PROCESSING, PROCESSED, COMMITTED, HELD = (
    State.PLANNED, State.PROCESSING, State.PROCESSED, State.COMMITTED, State.HELD,
)  # fmt: skip


def test_an_attempt_is_in_the_ledger_before_it_starts(bench: Bench) -> None:
    bench.plan_many(3)
    attempt = bench.ledger.attempts.start(bench.lease("me"), 1, 2, "staging/x", {"dag": "drain"})
    assert (attempt.number, attempt.epoch, attempt.outcome) == (1, 1, Outcome.RUNNING)
    assert bench.states() == [PROCESSING, PROCESSING, PLANNED]
    (logged,) = bench.ledger.attempts.of_txid(bench.id, 2)
    assert (logged["holder"], logged["staging"], logged["context"]) == ("me", "staging/x", '{"dag":"drain"}')
    assert (logged["started_at"], logged["ended_at"]) == (bench.clock.now, None)
    assert bench.ledger.attempts.of_txid(bench.id, 3) == []
    assert bench.ledger.attempts.find(attempt.id) == attempt


def test_a_higher_attempt_fences_a_lower_one(bench: Bench) -> None:
    bench.plan_many(2)
    lease = bench.lease()
    lower = bench.start(lease, 1, 2)
    higher = bench.start(lease, 1, 2)
    assert (lower.number, higher.number) == (1, 2)
    assert bench.outcomes(1) == ["fenced", "running"]
    with pytest.raises(Fenced, match="not the current one"):
        bench.ledger.attempts.processed(lease, lower, staged_for(lower))
    bench.ledger.attempts.processed(lease, higher, staged_for(higher))
    assert bench.states() == [PROCESSED, PROCESSED]


def test_a_smaller_attempt_splits_the_group_that_it_supersedes(bench: Bench) -> None:
    bench.plan_many(4)
    lease = bench.lease()
    group = bench.process(lease, 1, 4)
    alone = bench.start(lease, 2, 2)
    assert alone.number == 2
    assert bench.states() == [PLANNED, PROCESSING, PLANNED, PLANNED]
    assert [b.attempt for b in bench.ledger.batches.get(bench.id, 1, 4)] == [None, alone.id, None, None]
    assert bench.outcomes(1) == ["abandoned"]
    assert txids_of(bench, group.id) == []
    bench.start(lease, 3, 4)
    assert bench.states() == [PLANNED, PROCESSING, PROCESSING, PROCESSING]


def test_an_attempt_at_one_group_leaves_the_others_alone(bench: Bench) -> None:
    bench.plan_many(6)
    lease = bench.lease()
    before, after = bench.process(lease, 1, 2), bench.start(lease, 5, 6)
    bench.start(lease, 3, 4)
    assert bench.states() == [PROCESSED, PROCESSED, PROCESSING, PROCESSING, PROCESSING, PROCESSING]
    assert txids_of(bench, before.id) == [1, 2]
    assert txids_of(bench, after.id) == [5, 6]


@pytest.mark.parametrize("state", [HELD, COMMITTED])
def test_no_attempt_starts_at_a_txid_that_is_held_or_committed(bench: Bench, state: State) -> None:
    bench.plan_many(2)
    lease = bench.lease()
    if state == HELD:
        bench.ledger.attempts.hold(lease, bench.process(lease, 1, 1), "gate")
    else:
        bench.commit(lease, 1, 1)
    with pytest.raises(Fenced):
        bench.start(lease, 1, 2)
    assert bench.states() == [state, PLANNED], "nothing of the refused attempt stays"
    assert len(bench.outcomes(1)) == 1


def test_no_attempt_starts_at_a_txid_that_is_not_planned(bench: Bench) -> None:
    bench.plan_many(1)
    with pytest.raises(Fenced):
        bench.start(bench.lease(), 1, 2)
    assert bench.states() == [PLANNED]


def test_whoever_lost_the_lease_neither_starts_nor_reports_nor_holds(bench: Bench) -> None:
    bench.plan_many(2)
    lost = bench.lease("one", 60)
    running, done = bench.start(lost, 1, 1), bench.process(lost, 2, 2)
    bench.clock.passes(61)
    bench.lease("two")
    with pytest.raises(Fenced, match="taken over"):
        bench.start(lost, 1, 1)
    with pytest.raises(Fenced, match="taken over"):
        bench.ledger.attempts.processed(lost, running, staged_for(running))
    with pytest.raises(Fenced, match="taken over"):
        bench.ledger.attempts.hold(lost, done, "gate")
    assert bench.states() == [PLANNED, PROCESSED]


def test_what_was_staged_comes_back_as_it_was(bench: Bench) -> None:
    bench.plan_many(2)
    attempt = bench.process(bench.lease(), 1, 2)
    assert attempt.staged is not None
    assert bench.ledger.attempts.find(attempt.id) == attempt
    first = bench.ledger.batches.get(bench.id, 1, 1)[0]
    assert first.accounting == attempt.staged.results[0].accounting
    assert first.input == Tally(10, 8, 6)
    assert first.highest_event_time == 1000


def test_the_first_input_seen_is_kept_for_every_replay(bench: Bench) -> None:
    bench.plan_many(1)
    lease = bench.lease()
    first = bench.process(lease, 1, 1)
    bench.ledger.attempts.give_up(lease, first, Outcome.FAILED, "files are gone")
    again = bench.start(lease, 1, 1)
    other = replace(staged_for(again).results[0], accounting=Accounting(emitted=Tally(3, 3, 3), rows_out=3))
    bench.ledger.attempts.processed(lease, again, replace(staged_for(again), results=(other,)))
    (batch,) = bench.ledger.batches.get(bench.id, 1, 1)
    assert batch.input == Tally(10, 8, 6)
    assert batch.accounting == other.accounting


def test_processed_twice_is_refused(bench: Bench) -> None:
    bench.plan_many(1)
    lease = bench.lease()
    attempt = bench.process(lease, 1, 1)
    with pytest.raises(Fenced):
        bench.ledger.attempts.processed(lease, attempt, staged_for(attempt))


def test_a_held_txid_keeps_its_attempt_and_says_why(bench: Bench) -> None:
    bench.plan_many(1)
    lease = bench.lease()
    attempt = bench.process(lease, 1, 1)
    bench.ledger.attempts.hold(lease, attempt, "null share is 7 %")
    (batch,) = bench.ledger.batches.get(bench.id, 1, 1)
    assert (batch.state, batch.held_reason, batch.attempt) == (HELD, "null share is 7 %", attempt.id)
    assert bench.outcomes(1) == ["processed"]
    assert bench.journal() == [("held", 1)]


def test_only_a_processed_attempt_is_held(bench: Bench) -> None:
    bench.plan_many(1)
    lease = bench.lease()
    running = bench.start(lease, 1, 1)
    with pytest.raises(Fenced):
        bench.ledger.attempts.hold(lease, running, "gate")
    assert bench.states() == [PROCESSING]


@pytest.mark.parametrize("processed", [False, True])
def test_giving_up_plans_the_txids_again(bench: Bench, processed: bool) -> None:
    bench.plan_many(3)
    lease = bench.lease()
    attempt = bench.process(lease, 1, 2) if processed else bench.start(lease, 1, 2)
    bench.ledger.attempts.give_up(lease, attempt, Outcome.FAILED, "no room")
    assert bench.states() == [PLANNED] * 3
    (logged,) = bench.ledger.attempts.of_txid(bench.id, 1)
    assert (logged["outcome"], logged["error"], logged["ended_at"]) == ("failed", "no room", bench.clock.now)


def test_giving_up_changes_nothing_of_a_newer_attempt(bench: Bench) -> None:
    bench.plan_many(2)
    lease = bench.lease()
    lower = bench.start(lease, 1, 2)
    higher = bench.start(lease, 1, 1)
    bench.ledger.attempts.give_up(lease, lower, Outcome.FAILED, "too late")
    assert bench.states() == [PROCESSING, PLANNED]
    assert bench.outcomes(1) == ["fenced", "running"]
    assert txids_of(bench, higher.id) == [1]


def test_giving_up_never_takes_a_commit_back(bench: Bench) -> None:
    bench.plan_many(1)
    lease = bench.lease()
    attempt = bench.process(lease, 1, 1)
    bench.ledger.attempts.committed(bench.id, bench.manifests(attempt))
    bench.ledger.attempts.give_up(lease, attempt, Outcome.FAILED, "too late")
    assert bench.states() == [COMMITTED]
    assert bench.outcomes(1) == ["committed"]


def test_a_commit_moves_frontier_and_watermark_and_keeps_what_the_manifest_says(bench: Bench) -> None:
    bench.plan_many(3)
    manifests = bench.commit(bench.lease(), 1, 2)
    assert (bench.generation.frontier, bench.generation.watermark) == (2, 1900)
    batch = bench.ledger.batches.get(bench.id, 2, 2)[0]
    assert (batch.state, batch.watermark, batch.highest_event_time) == (COMMITTED, 1900, 2000)
    assert (batch.epoch, batch.committed_at) == (1, bench.clock.now)
    assert batch.accounting == manifests[1].accounting
    assert bench.outcomes(1) == ["committed"]
    assert bench.ledger.attempts.to_clean(bench.id) == []
    assert bench.ledger.batches.committed_before(bench.id, 2, bench.clock.now + 1)
    assert not bench.ledger.batches.committed_before(bench.id, 2, bench.clock.now)
    assert not bench.ledger.batches.committed_before(bench.id, 3, bench.clock.now + 1)


def test_marking_a_commit_again_changes_nothing(bench: Bench) -> None:
    bench.plan_many(4)
    lease = bench.lease()
    first = bench.commit(lease, 1, 2)
    second = bench.commit(lease, 3, 4)
    before = (bench.generation, bench.ledger.batches.get(bench.id, 1, 4))
    bench.clock.passes(10)
    for again in (first, second, second[1:]):
        bench.ledger.attempts.committed(bench.id, again)
    assert (bench.generation, bench.ledger.batches.get(bench.id, 1, 4)) == before


def test_a_commit_that_does_not_follow_the_frontier_is_refused(bench: Bench) -> None:
    bench.plan_many(4)
    lease = bench.lease()
    bench.commit(lease, 1, 1)
    later = bench.manifests(bench.process(lease, 3, 4))
    with pytest.raises(LedgerSinkMismatch, match="do not follow"):
        bench.ledger.attempts.committed(bench.id, later)
    assert bench.generation.frontier == 1
    assert bench.states() == [COMMITTED, PLANNED, PROCESSED, PROCESSED]


def test_a_commit_beyond_the_plan_is_refused(bench: Bench) -> None:
    bench.plan_many(2)
    manifests = bench.manifests(bench.process(bench.lease(), 1, 2))
    with pytest.raises(LedgerSinkMismatch):
        bench.ledger.attempts.committed(bench.id, [*manifests, replace(manifests[1], txid=3)])
    assert bench.generation.frontier == 0


def test_a_commit_with_a_gap_is_refused(bench: Bench) -> None:
    bench.plan_many(3)
    one, _, three = bench.manifests(bench.process(bench.lease(), 1, 3))
    with pytest.raises(LedgerSinkMismatch, match="not all of txids 1 to 3"):
        bench.ledger.attempts.committed(bench.id, [one, three])
    assert bench.generation.frontier == 0
    assert bench.states() == [PROCESSED] * 3


def test_a_commit_of_another_range_is_refused_as_a_whole(bench: Bench) -> None:
    bench.plan_many(2)
    one, two = bench.manifests(bench.process(bench.lease(), 1, 2))
    with pytest.raises(LedgerSinkMismatch, match="other ranges"):
        bench.ledger.attempts.committed(bench.id, [one, replace(two, range_digest="another")])
    assert bench.generation.frontier == 0
    assert bench.states() == [PROCESSED] * 2


def test_a_repeated_commit_with_another_range_is_not_a_no_op(bench: Bench) -> None:
    bench.plan_many(1)
    (manifest,) = bench.commit(bench.lease(), 1, 1)
    with pytest.raises(LedgerSinkMismatch):
        bench.ledger.attempts.committed(bench.id, [replace(manifest, range_digest="another")])


def test_recovery_marks_what_the_sink_has_without_a_lease_and_tells_it(bench: Bench) -> None:
    bench.plan_many(2)
    lease = bench.lease("one", 60)
    attempt = bench.process(lease, 1, 2)
    bench.clock.passes(61)
    bench.lease("two")
    bench.ledger.attempts.committed(bench.id, bench.manifests(attempt), recovered=True)
    assert bench.states() == [COMMITTED] * 2
    assert bench.outcomes(1) == ["committed"]
    assert ("recovered", 2) in bench.journal()


def test_what_is_committed_was_committed_even_if_the_ledger_thought_it_abandoned(bench: Bench) -> None:
    """Killed between the sink's commit and the ledger's mark while the ledger still had it as running."""
    bench.plan_many(1)
    attempt = bench.start(bench.lease("one", 60), 1, 1)
    bench.clock.passes(61)
    bench.lease("two")
    bench.ledger.attempts.committed(bench.id, bench.manifests(attempt), recovered=True)
    assert bench.outcomes(1) == ["committed"]
    assert bench.ledger.attempts.to_clean(bench.id) == [], "its files are live"


def test_leftovers_are_what_ended_without_a_commit_until_they_are_cleaned(bench: Bench) -> None:
    bench.plan_many(4)
    lease = bench.lease()
    bench.commit(lease, 1, 1)
    failed = bench.start(lease, 2, 2)
    bench.ledger.attempts.give_up(lease, failed, Outcome.FAILED, "x")
    fenced, running = bench.start(lease, 3, 3), bench.start(lease, 3, 3)
    assert [a.id for a in bench.ledger.attempts.to_clean(bench.id)] == [failed.id, fenced.id]
    bench.ledger.attempts.cleaned(failed)
    bench.ledger.attempts.cleaned(fenced)
    assert bench.ledger.attempts.to_clean(bench.id) == []
    assert [a["id"] for a in bench.ledger.attempts.newest(bench.id, 2)] == [running.id, fenced.id]


def test_an_error_text_of_any_letters_is_kept_readable(bench: Bench) -> None:
    """PostgreSQL takes no NUL, neither database half a surrogate pair; poison input brings both into errors."""
    bench.plan_many(1)
    lease = bench.lease()
    bench.ledger.attempts.give_up(lease, bench.start(lease, 1, 1), Outcome.FAILED, "bad \x00 and \udcff: ö")
    assert bench.ledger.attempts.of_txid(bench.id, 1)[0]["error"] == "bad \\x00 and \\udcff: ö"
    bench.ledger.attempts.hold(lease, bench.process(lease, 1, 1), "\x00")
    bench.ledger.batches.release(bench.id, 1, "\udcff")
    assert [entry["detail"] for entry in bench.ledger.journal.newest(bench.id)] == ["\\udcff", "\\x00"]


def txids_of(bench: Bench, attempt: int) -> list[int]:
    batches = bench.ledger.batches.get(bench.id, 1, bench.generation.last_txid)
    return txids([batch for batch in batches if batch.attempt == attempt])
