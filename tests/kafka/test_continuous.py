"""Continuous mode on a real broker: the same result as any other road, handed over both ways, stopped in any way."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.home import assert_true
from tests.faults.processes import Command
from tests.kafka.home import KafkaHome, event
from tests.kafka.streaming import NOW, SOON, Streaming, counted, facts, planned, stream, until
from tests.kafka.test_drain import events
from tests.kafka.test_plan import everything, offsets
from tests.kafka.topic import Topic
from twinstream.errors import LeaseHeld, Refused, SourceChanged
from twinstream.ledger.journal import PAUSED
from twinstream.runtime.progress import Progress


@pytest.fixture
def home(folder: Path, spark: Any, topic: Topic) -> KafkaHome:
    made = KafkaHome.on(folder, spark, topic)
    made.change("page_views", "batch_records=100_000", "batch_records=100")
    return made


def test_handed_over_both_ways_while_data_comes_there_is_no_gap_and_no_repeat(
    home: KafkaHome, topic: Topic, seed: int
) -> None:
    chance = random.Random(seed)
    for road in (stream, lambda one: one.drain("page_views"), stream, lambda one: one.drain("page_views")):
        topic.send([*events(chance, 120), "broken"])
        road(home)
    assert offsets(planned(home)) == everything(topic, *(topic._sent[number] + 1 for number in range(3)))
    assert_true(home, "page_views", "side")


def test_what_comes_while_it_runs_is_visible_soon_and_a_stop_leaves_nothing_half_done(
    home: KafkaHome, topic: Topic
) -> None:
    topic.send([event(0)], 0)
    with Streaming(home) as running:
        until(lambda: emitted(home) == 1)
        topic.send([event(1)], 1)
        until(lambda: emitted(home) == 2)
        assert facts(home)["every"] == "200 milliseconds"
        with pytest.raises(LeaseHeld):
            stream(home, SOON)
    assert running.error is None
    assert facts(home)["frontier"] == len(planned(home))
    assert checkpoints(home) == []
    assert_true(home, "page_views", "side")


def test_a_pause_ends_it(home: KafkaHome, topic: Topic) -> None:
    topic.send([event(1)], 0)
    running = Streaming(home)
    until(lambda: emitted(home) == 1)
    engine = home.engine()
    engine.ledger.journal.add(engine.generation(engine.definition("page_views")).id, PAUSED, "a test")
    running.wait()
    assert running.error is None


def test_what_is_planned_but_not_committed_is_finished_first(home: KafkaHome, topic: Topic) -> None:
    topic.send(events(random.Random(5), 50), 0)
    engine = home.engine()
    definition = engine.definition("page_views")
    engine.plan(definition, engine.generation(definition, create=True), 20)
    topic.send(events(random.Random(6), 10), 1)
    stream(home)
    assert_true(home, "page_views", "side")


def test_a_backlog_is_drained_before_a_query_begins(home: KafkaHome, topic: Topic) -> None:
    topic.send(events(random.Random(5), 1_000))
    with Streaming(home) as running:
        until(lambda: counted(home) == 1_000)
        topic.send([event(1)], 1)
        until(lambda: counted(home) == 1_001)
        until(lambda: facts(home).get("behind") == 0)
        assert facts(home)["most_records"] == 100, "no batch of the query was full"
    assert running.error is None
    assert len(planned(home)) > 10
    assert_true(home, "page_views", "side")


def test_a_pause_ends_it_while_it_catches_up(home: KafkaHome, topic: Topic) -> None:
    topic.send(events(random.Random(5), 300))
    engine = home.engine()
    generation = engine.generation(engine.definition("page_views"), create=True)
    engine.ledger.journal.add(generation.id, PAUSED, "a test")
    running = Streaming(home)
    running.wait()
    assert running.error is None
    assert (counted(home), planned(home)) == (0, [])


def test_records_that_are_deleted_before_they_are_read_end_it_by_name(home: KafkaHome, topic: Topic) -> None:
    topic.send(events(random.Random(5), 20), 0)
    stream(home)
    topic.send(events(random.Random(6), 10), 0)
    topic.forget(0, 25)
    with pytest.raises(SourceChanged, match="has deleted offsets 20 to 24"):
        stream(home)


@pytest.mark.parametrize(
    "point", ["continuous.forget:after", "ledger.plan:after", "sink.commit:after", "continuous.forget:before@2"]
)
def test_killed_there_the_next_one_goes_on(home: KafkaHome, topic: Topic, point: str) -> None:
    topic.send(events(random.Random(7), 250))
    environment = {
        "TWINSTREAM_HOME": str(home.folder),
        "TWINSTREAM_PIPELINES": str(home.pipelines),
        "TWINSTREAM_KAFKA_DEFAULT": topic.address,
        "TWINSTREAM_MASTER": "local[1]",
        "TWINSTREAM_FAILPOINT": point,
    }
    command = ["continuous", "page_views", "--available-now", "--wait", "0"]
    assert Command(home.folder, command, environment).wait(240).code == -signal.SIGKILL
    assert bool(checkpoints(home)) == (point != "continuous.forget:after")
    topic.send(events(random.Random(8), 30))
    stream(home)
    assert offsets(planned(home)) == everything(topic, *(topic._sent[number] + 1 for number in range(3)))
    assert_true(home, "page_views", "side")
    assert checkpoints(home) == []


def test_asked_to_terminate_the_command_ends_well(home: KafkaHome, topic: Topic) -> None:
    topic.send([event(1)], 0)
    environment = {
        "TWINSTREAM_HOME": str(home.folder),
        "TWINSTREAM_PIPELINES": str(home.pipelines),
        "TWINSTREAM_KAFKA_DEFAULT": topic.address,
        "TWINSTREAM_MASTER": "local[1]",
    }
    command = Command(home.folder, ["continuous", "page_views", "--every", "1 second", "--json"], environment)
    until(lambda: emitted(home) == 1)
    os.kill(command.pid, signal.SIGTERM)
    ended = command.wait(120)
    assert ended.code == 0, ended.err
    assert (ended.json()["records"], ended.json()["frontier"]) == (1, 1)
    assert checkpoints(home) == []
    assert_true(home, "page_views", "side")


def test_a_pipeline_of_files_has_no_continuous_mode_and_nothing_is_made_for_it(home: KafkaHome) -> None:
    with pytest.raises(Refused, match="reads files"):
        home.engine().continuous("orders", NOW, Progress())
    assert home.engine().ledger.generations.current("orders") is None


def checkpoints(home: KafkaHome) -> list[Path]:
    return list(home.folder.glob("checkpoints/*/*/*"))


def emitted(home: KafkaHome) -> int:
    return counted(home, "emitted")
