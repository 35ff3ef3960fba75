"""A smaller run of the model on a real Delta table: runners lose their leases, die and go on at any durable step."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.faults.model.delta_world import DeltaWorld

WORLDS = 5
TURNS = 450
LEASE_MICROS = 12_000_000


def storm(world: DeltaWorld, chance: random.Random) -> None:
    """Everyone at once; leases run out in the middle of work, and whoever lost one goes on without knowing."""
    for turn in range(TURNS):
        alive = [actor for actor in world.actors if actor.running]
        what = chance.random()
        if len(alive) < 3:
            start = len(world.source.records)
            world.source.records.extend(start + chance.randint(-10, 20) for _ in range(chance.randint(0, 6)))
            chance.choice([world.runner, world.runner, world.runner, world.folder_actor, world.cleaner])()
        elif what < 0.01:
            world.kill(chance.choice(alive))
        elif what < 0.05:
            world.now += LEASE_MICROS
        elif what < 0.07:
            lose_a_staged_file(world, chance)
        else:
            world.step(chance.choice(alive), chance.randint(1, 6))
        if turn % 15 == 0:
            world.check()


def lose_a_staged_file(world: DeltaWorld, chance: random.Random) -> None:
    """Only while nobody stands between seeing the files and naming them: what is lost there only readers can notice."""
    disk = world.disk
    staged = sorted(set(disk.files) - disk.live)
    if staged and not any(actor.at.startswith(("sink.notes", "sink.commit", "sink.base")) for actor in world.actors):
        world.lose(chance.choice(staged))


@pytest.mark.parametrize("number", range(WORLDS))
def test_every_record_exactly_once_on_a_real_table(number: int, seed: int, tmp_path: Path, template: Path) -> None:
    world = DeltaWorld(tmp_path, template)
    try:
        storm(world, random.Random(f"{seed} {number}"))
        world.check_ledger()
        world.settle()
    finally:
        world.close()
    assert world.steps > TURNS
    assert world.mismatches == []
