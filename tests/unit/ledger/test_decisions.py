"""What people decide about a txid that is held or that failed."""

from __future__ import annotations

import pytest

from tests.unit.ledger.bench import Bench
from twinstream.errors import Refused
from twinstream.transaction import Outcome, State


def _hold(bench: Bench, txid: int) -> int:
    lease = bench.lease() if bench.ledger.leases.holder(bench.id) is None else bench.lease_again()
    attempt = bench.process(lease, txid, txid)
    bench.ledger.attempts.hold(lease, attempt, "gate")
    return attempt.id


def test_a_released_txid_passes_with_what_was_staged(bench: Bench) -> None:
    bench.plan_many(2)
    attempt = _hold(bench, 1)
    bench.ledger.batches.release(bench.id, 1, "looked at it")
    (batch,) = bench.ledger.batches.get(bench.id, 1, 1)
    assert (batch.state, batch.waived, batch.held_reason) == (State.PROCESSED, True, None)
    assert batch.attempt == attempt
    assert bench.journal() == [("held", 1), ("released", 1)]
    assert bench.ledger.journal.newest(bench.id, 1)[0]["detail"] == "looked at it"


def test_a_discarded_txid_is_planned_to_commit_empty(bench: Bench) -> None:
    bench.plan_many(2)
    attempt = _hold(bench, 1)
    bench.ledger.batches.discard(bench.id, 1, "test data")
    (batch,) = bench.ledger.batches.get(bench.id, 1, 1)
    assert (batch.state, batch.discard_reason, batch.held_reason, batch.attempt) == (
        State.PLANNED, "test data", None, None,
    )  # fmt: skip
    assert bench.outcomes(1) == ["abandoned"]
    assert [a.id for a in bench.ledger.attempts.to_clean(bench.id)] == [attempt]
    assert bench.journal() == [("held", 1), ("discarded", 1)]


def test_a_txid_that_failed_alone_can_be_discarded(bench: Bench) -> None:
    bench.plan_many(2)
    lease = bench.lease()
    bench.ledger.attempts.give_up(lease, bench.start(lease, 1, 1), Outcome.FAILED, "corrupt")
    bench.ledger.batches.discard(bench.id, 1, "corrupt for good")
    assert bench.ledger.batches.get(bench.id, 1, 1)[0].discard_reason == "corrupt for good"


def test_a_txid_of_a_group_that_failed_is_not_known_to_be_at_fault(bench: Bench) -> None:
    bench.plan_many(2)
    lease = bench.lease()
    bench.ledger.attempts.give_up(lease, bench.start(lease, 1, 2), Outcome.FAILED, "one of them")
    with pytest.raises(Refused, match="neither held nor failed"):
        bench.ledger.batches.discard(bench.id, 2, "guess")


def test_a_txid_that_is_being_tried_again_is_not_discarded(bench: Bench) -> None:
    bench.plan_many(1)
    lease = bench.lease()
    bench.ledger.attempts.give_up(lease, bench.start(lease, 1, 1), Outcome.FAILED, "x")
    bench.start(lease, 1, 1)
    with pytest.raises(Refused):
        bench.ledger.batches.discard(bench.id, 1, "impatient")
    assert bench.states() == [State.PROCESSING]


@pytest.mark.parametrize("decision", ["release", "discard"])
@pytest.mark.parametrize("state", ["planned", "processed", "committed", "unknown"])
def test_nothing_else_is_released_or_discarded(bench: Bench, decision: str, state: str) -> None:
    bench.plan_many(1)
    lease = bench.lease()
    if state == "processed":
        bench.process(lease, 1, 1)
    elif state == "committed":
        bench.commit(lease, 1, 1)
    before = bench.ledger.batches.get(bench.id, 1, 1)
    with pytest.raises(Refused, match="status"):
        getattr(bench.ledger.batches, decision)(bench.id, 9 if state == "unknown" else 1, "because")
    assert bench.ledger.batches.get(bench.id, 1, 1) == before
    assert bench.journal() == []


def test_a_decision_is_taken_once(bench: Bench) -> None:
    bench.plan_many(1)
    _hold(bench, 1)
    bench.ledger.batches.release(bench.id, 1, "first")
    with pytest.raises(Refused):
        bench.ledger.batches.release(bench.id, 1, "second")
    with pytest.raises(Refused):
        bench.ledger.batches.discard(bench.id, 1, "third")
