"""Killed in the steps that trouble brings about: a gate that refuses, a record that fails, a person who decides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.model.drive import kill_at
from tests.faults.model.world import Actor, World
from twinstream.transaction import State

STEPS = ("ledger.hold", "ledger.give-up", "ledger.release", "ledger.discard", "ledger.rate", "ledger.cleaned")


@pytest.fixture
def world(tmp_path: Path, template: Path) -> Iterator[World]:
    made = World(tmp_path, template)
    made.source.records.extend(range(18))
    yield made
    made.close()


def trouble(world: World) -> Iterator[Actor]:
    """The gate refuses txid 2, which is released; txid 5 cannot be processed, and is discarded."""
    world.held = {2}
    world.poisoned = {13}
    yield world.runner(2)
    yield world.decide("release", 2)
    yield world.runner(2)
    yield world.decide("discard", 5)
    world.poisoned = set()
    yield world.runner(2)
    yield world.spawn("rate", lambda: world.ledger.generations.note_rate(world.generation, 1.0))


def test_the_story_without_a_kill_ends_with_one_txid_given_up(world: World) -> None:
    outcomes = [world.finish(actor) for actor in trouble(world)]
    assert outcomes == ["GateHeld", "done", "ProcessingFailed", "done", "done", "done"]
    batches = world.ledger.batches.get(world.generation, 1, 6)
    assert [batch.txid for batch in batches if batch.discard_reason] == [5]
    assert all(batch.state == State.COMMITTED for batch in batches)
    world.check()


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_killed_there_the_next_one_goes_on(world: World, step: str, side: str) -> None:
    assert kill_at(world, trouble(world), f"{step}:{side}"), f"{step}:{side} was not reached"
    world.check()
    world.check_ledger()
    world.settle()
