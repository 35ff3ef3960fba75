"""Runs of the batch layer are logged before they start, resumed after a crash, and never end twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.ledger.bench import Bench
from twinstream.errors import Fenced, Refused
from twinstream.ledger.runs import DONE, FAILED, RUNNING, Wanted


def wanted(bench: Bench, **values: object) -> Wanted:
    return replace(Wanted(bench.id, "recompute", 3, "hash", {}, "batch/a"), **values)  # type: ignore[arg-type]


def test_a_run_is_there_from_its_start_to_its_end(bench: Bench) -> None:
    runs = bench.ledger.runs
    run = runs.start(wanted(bench), "one", 60)
    assert (run.state, run.folder, run.result) == (RUNNING, "batch/a", None)
    runs.note(run, {"chunks": ["1-2"]})
    assert runs.get(run.id).result == {"chunks": ["1-2"]}
    runs.finish(run, {"rows": 7})
    done = runs.get(run.id)
    assert (done.state, done.result) == (DONE, {"rows": 7})
    assert [found.id for found in runs.done(bench.id, "recompute", 3)] == [run.id]
    assert runs.done(bench.id, "recompute", 2) == []


def test_a_run_that_was_left_half_done_is_taken_over_with_its_work(bench: Bench) -> None:
    runs = bench.ledger.runs
    first = runs.start(wanted(bench), "one", 60)
    runs.note(first, {"chunks": ["1-2"]})
    beside = runs.start(wanted(bench, folder="batch/b"), "two", 60)
    assert beside.id != first.id, "the first is alive"
    bench.clock.passes(61)
    again = runs.start(wanted(bench, folder="batch/c"), "three", 60)
    assert (again.id, again.folder) == (beside.id, "batch/b")
    with pytest.raises(Fenced):
        runs.finish(beside, {})
    failed = runs.start(wanted(bench), "four", 60)
    assert failed.id == first.id
    assert failed.result == {"chunks": ["1-2"]}
    runs.fail(failed, "no room")
    assert runs.get(first.id).state == FAILED
    assert runs.start(wanted(bench), "five", 60).id == first.id


def test_another_frontier_scope_or_definition_is_another_run(bench: Bench) -> None:
    runs = bench.ledger.runs
    first = runs.start(wanted(bench), "one", 60)
    runs.fail(first, "killed")
    for other in ({"frontier": 2}, {"scope": {"start": 1}}, {"definition_hash": "new"}, {"kind": "repair"}):
        assert runs.start(wanted(bench, **other), "two", 60).id != first.id


def test_alone_means_alone_until_the_other_is_dead(bench: Bench) -> None:
    runs = bench.ledger.runs
    first = runs.start(wanted(bench, kind="repair"), "one", 60, alone=True)
    with pytest.raises(Refused, match="Another repair"):
        runs.start(wanted(bench, kind="repair", frontier=9), "two", 60, alone=True)
    second = runs.start(wanted(bench, kind="repair"), "two", 60, alone=True, is_dead=lambda holder: holder == "one")
    assert second.id == first.id
    with pytest.raises(Fenced):
        runs.renew(first, 60)
