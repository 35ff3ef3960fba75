"""A continuous query on a booted Airflow and a real broker: started, killed, handed over, stopped, and the truth."""

from __future__ import annotations

import os
import random
import signal
from dataclasses import dataclass

import pytest

from tests import truth
from tests.airflow.e2e.world import World, wait_for
from tests.airflow.processes import wait_until
from tests.kafka.home import KafkaHome
from tests.kafka.test_drain import events
from tests.kafka.topic import Topic
from twinstream.cli.standing import existing_ledger
from twinstream.ledger import Run
from twinstream.runtime.supervision import streaming
from twinstream.settings import Settings

pytestmark = pytest.mark.timeout(900)
NAME = "streamed"
DAG = f"{NAME}__continuous"


@dataclass
class _Home(KafkaHome):
    """Looks into the world's home, with the world's ledger."""

    known: Settings | None = None

    @property
    def settings(self) -> Settings:
        assert self.known is not None
        return self.known


def held_by(world: World) -> Run | None:
    with existing_ledger(world.ledger_url) as ledger:
        generation = ledger.generations.current(NAME) if ledger else None
        return streaming(ledger, generation.id) if ledger and generation else None


def read(world: World) -> int:
    """How many records are committed."""
    with existing_ledger(world.ledger_url) as ledger:
        generation = ledger.generations.current(NAME) if ledger else None
        return ledger.batches.totals(generation.id)["read"] if ledger and generation else 0


def pid_of(run: Run) -> int:
    return int(run.holder.partition(" pid ")[2].split()[0])


@pytest.fixture(scope="module")
def topic(world: World) -> Topic:
    return Topic(world.broker, NAME).make()


def test_a_query_is_kept_up_leaves_micro_batches_out_and_ends_when_asked(world: World, topic: Topic) -> None:
    chance = random.Random(1)
    topic.send(events(chance, 50))
    run = world.start(DAG)
    wait_for(lambda: read(world) == 50, 150, "the first records to be committed")
    world.task_reaches(DAG, run, "stream", "deferred", seconds=60)

    second, state = world.run(DAG)
    assert (state, world.states(DAG, second)["stream"]) == ("success", "skipped")
    micro, _ = world.run(f"{NAME}__microbatch")
    assert world.states(f"{NAME}__microbatch", micro)["drain"] == "skipped"
    assert world.rest.run(f"{NAME}__microbatch", micro)["note"].startswith("The continuous run")

    first = held_by(world)
    assert first is not None
    os.kill(pid_of(first), signal.SIGKILL)
    topic.send(events(chance, 50))
    wait_for(lambda: read(world) == 100, 150, "another query to go on")
    again = held_by(world)
    assert again is not None
    assert pid_of(again) != pid_of(first)
    assert world.rest.run(DAG, run)["state"] == "running"

    world.rest.unpause(f"{NAME}__microbatch")
    handed, state = world.run(f"{NAME}__control", {"action": "handover", "to": "microbatch", "reason": "for the night"})
    assert state == "success", world.log(f"{NAME}__control", handed, "decide")
    assert world.ended(DAG, run, 60) == "success"
    assert world.rest.run(DAG, run)["note"].startswith("Ended: stop asked")
    assert wait_until(lambda: world.at_work(NAME) == [], 60)
    topic.send(events(chance, 20))
    assert world.run(f"{NAME}__microbatch")[1] == "success"
    assert read(world) == 120

    home = _Home(world.home, world.spark, world.folder / "pipelines", topic, world.broker, world.settings())
    expected = truth.truth_page_views(home.ranges(NAME), "side")
    assert home.read(NAME) == sorted(tuple(row) for row in expected.rows)


def test_a_run_that_is_marked_and_a_dag_that_is_paused_leave_no_query_behind(world: World, topic: Topic) -> None:
    assert held_by(world) is None, "an earlier scene has left its query behind"
    known = read(world)
    run = world.start(DAG)
    topic.send(events(random.Random(2), 10))
    wait_for(lambda: read(world) == known + 10, 150, "the records to be committed")
    world.rest.call("PATCH", f"/dags/{DAG}", {"is_paused": True})
    assert wait_until(lambda: world.at_work(NAME) == [], 120), "a paused DAG lets it end"
    world.rest.unpause(DAG)
    topic.send(events(random.Random(3), 10))
    wait_for(lambda: read(world) == known + 20, 150, "it to go on when the DAG does")
    world.rest.call("PATCH", f"/dags/{DAG}/dagRuns/{run}", {"state": "failed"})
    assert wait_until(lambda: world.at_work(NAME) == [], 60)
    assert held_by(world) is None
