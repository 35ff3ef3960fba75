"""Driving the actors of the world by hand: up to a step, to the end, into death."""

from __future__ import annotations

from collections.abc import Iterable

from tests.faults.model.world import Actor, World


def until(world: World, actor: Actor, point: str) -> bool:
    """Lets an actor go on up to a failpoint; False if it ended before."""
    while actor.running:
        if actor.body.switch() == point:
            return True
    return False


def stopped_at(world: World, point: str, group: int | None = None) -> Actor:
    """A runner that stands at a failpoint."""
    actor = world.runner(group)
    assert until(world, actor, point), f"{point} was not reached: {actor.outcome}"
    return actor


def kill_at(world: World, actors: Iterable[Actor], point: str) -> bool:
    """Runs actors one after another, and kills the one that reaches the failpoint; False if none did."""
    for actor in actors:
        if until(world, actor, point):
            world.kill(actor)
            return True
    return False


def lease_runs_out(world: World) -> None:
    """Whoever holds the lease holds it no longer, and does not know."""
    world.now += 60 * 1_000_000
