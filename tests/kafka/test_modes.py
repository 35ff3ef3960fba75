"""Who runs a pipeline: asked to stop, handed over while data keeps coming, taken over by one that stands by."""

from __future__ import annotations

import math
import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.home import assert_true
from tests.faults.processes import Command
from tests.faults.test_processes import FENCED, wait_until_stopped
from tests.kafka.home import KafkaHome, event
from tests.kafka.streaming import Streaming, facts, planned, stream, until
from tests.kafka.test_continuous import checkpoints, emitted
from tests.kafka.test_drain import events
from tests.kafka.test_plan import everything, offsets
from tests.kafka.topic import Topic
from twinstream.engine import DrainRequest
from twinstream.errors import Fenced
from twinstream.runtime import continuous, stopping
from twinstream.runtime.continuous import ASKED, ContinuousRequest
from twinstream.runtime.progress import Progress
from twinstream.runtime.supervision import begin, end, look, streaming

LEASE = 4.0
STANDBY = ContinuousRequest(every="200 milliseconds", wait_seconds=math.inf)


@pytest.fixture
def home(folder: Path, spark: Any, topic: Topic) -> KafkaHome:
    made = KafkaHome.on(folder, spark, topic)
    made.change("page_views", "batch_records=100_000", "batch_records=100")
    return made


@contextmanager
def producing(topic: Topic, chance: random.Random) -> Iterator[None]:
    """Data that keeps coming."""
    over = threading.Event()

    def send() -> None:
        while not over.wait(0.1):
            topic.send(events(chance, 5))

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(60)


def command(home: KafkaHome, topic: Topic, *arguments: str, **more: str) -> Command:
    environment = {
        "TWINSTREAM_HOME": str(home.folder),
        "TWINSTREAM_PIPELINES": str(home.pipelines),
        "TWINSTREAM_KAFKA_DEFAULT": topic.address,
        "TWINSTREAM_MASTER": "local[1]",
        **more,
    }
    return Command(home.folder, ["continuous", "page_views", "--every", "200 milliseconds", *arguments], environment)


def test_handed_over_again_and_again_while_data_keeps_coming_there_is_no_gap_and_no_repeat(
    home: KafkaHome, topic: Topic, seed: int
) -> None:
    engine = home.engine()
    topic.send(events(random.Random(seed), 30))
    home.drain("page_views")
    with producing(topic, random.Random(seed)):
        for _ in range(2):
            with Streaming(home) as running:
                comes_on(home)
                assert engine.stop("page_views", "to micro-batches") is True
                engine.wait_until_free("page_views", 60)
                running.wait()
            assert running.error is None
            assert (facts(home)["ended"], facts(home)["reason"]) == (ASKED, "to micro-batches")
            home.drain("page_views")
    stream(home)
    assert offsets(planned(home)) == everything(topic, *(topic._sent[number] + 1 for number in range(3)))
    assert_true(home, "page_views", "side")


def test_a_drain_that_is_asked_to_stop_ends_at_a_frontier_and_the_query_goes_on_there(
    home: KafkaHome, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopping, "LOOK_SECONDS", 0)
    topic.send(events(random.Random(3), 200), 0)
    engine = home.engine()

    class Asking(Progress):
        def committed(self, manifests: Any, seconds: float) -> None:
            engine.stop("page_views", "enough")

    engine.drain("page_views", DrainRequest(group=1, batch_records=20), Asking())
    assert 0 < frontier(home) < len(planned(home))
    stream(home)
    assert frontier(home) == len(planned(home))
    assert_true(home, "page_views", "side")


def test_a_stop_ends_those_who_stand_by_too_and_nobody_who_starts_later(home: KafkaHome, topic: Topic) -> None:
    topic.send([event(0)], 0)
    with running_and_waiting(home) as (first, second, _):
        home.engine().stop("page_views", "both of you")
        first.wait()
        second.wait()
    assert (first.error, second.error) == (None, None)
    topic.send([event(1)], 0)
    stream(home)
    assert emitted(home) == 2


def test_one_that_stands_by_for_a_generation_that_was_replaced_does_not_stream_into_it(
    home: KafkaHome, topic: Topic
) -> None:
    topic.send([event(0)], 0)
    with running_and_waiting(home) as (first, second, _):
        engine = home.engine()
        definition = engine.definition("page_views")
        built = engine.ledger.generations.build("page_views", definition.hash, "{}")
        engine.ledger.generations.promote(built)
        second.wait()
        first.stop.set()
        first.wait()
    assert isinstance(second.error, Fenced)
    assert "has taken the place of generation 1" in str(second.error)


def test_one_that_stands_by_rehearses_and_leaves_nothing_of_it(home: KafkaHome, topic: Topic) -> None:
    topic.send([event(0)], 0)
    with running_and_waiting(home) as (_, second, told):
        ledger = home.engine().ledger
        attempts, table = ledger.attempts.newest(1), files(home)
        until(lambda: "ready to take page_views over" in told)
        until(lambda: len(checkpoints(home)) == 1)
        assert (ledger.attempts.newest(1), files(home)) == (attempts, table)
        assert epoch(home) == 1
    assert second.error is None


def test_one_that_cannot_rehearse_stands_by_all_the_same(
    home: KafkaHome, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError("no room for a rehearsal")

    monkeypatch.setattr(continuous, "rehearse", fails)
    topic.send([event(0)], 0)
    with running_and_waiting(home) as (first, second, told):
        until(lambda: "a take-over could not be rehearsed: no room for a rehearsal" in told)
        first.stop.set()
        first.wait()
        topic.send([event(1)], 0)
        until(lambda: emitted(home) == 2)
    assert second.error is None


@pytest.mark.parametrize("way", ["killed", "hung"])
def test_one_that_stands_by_takes_over_and_the_first_one_commits_nothing_more(
    home: KafkaHome, topic: Topic, way: str
) -> None:
    topic.send(events(random.Random(4), 30))
    stop_there = {"TWINSTREAM_FAILPOINT": "sink.commit:before@2!stop"}
    first = command(home, topic, TWINSTREAM_LEASE_SECONDS=str(LEASE), **(stop_there if way == "hung" else {}))
    until(lambda: emitted(home) > 0)
    with Streaming(home, STANDBY) as second:
        topic.send(events(random.Random(5), 30))
        try:
            if way == "hung":
                wait_until_stopped(first)
            else:
                os.kill(first.pid, signal.SIGKILL)
            until(lambda: epoch(home) == 2, LEASE + 5)
            until(lambda: sum(one["read"] for one in home.accounting("page_views").values()) == 60)
            known = frontier(home)
            later = checkpoints(home)[0].parent / "3-later"
            later.mkdir()
        finally:
            if way == "hung":
                os.kill(first.pid, signal.SIGCONT)
        ended = first.wait(60)
        assert ended.code == (FENCED if way == "hung" else -signal.SIGKILL), ended.err
        assert ("Taken over" in ended.err) == (way == "hung")
        assert frontier(home) == known
        assert later.exists(), "whoever wakes up leaves the checkpoint of a later epoch alone"
    assert second.error is None
    assert_true(home, "page_views", "side")


def test_a_runner_under_supervision_shows_itself_and_ends_when_nobody_wants_it_any_more(
    home: KafkaHome, topic: Topic, tmp_path: Path
) -> None:
    topic.send([event(0)], 0)
    engine = home.engine()
    generation = engine.generation(engine.definition("page_views"), create=True)
    told = begin(engine.ledger, generation, 600, {})
    lapsed = begin(engine.ledger, generation, 600, {})
    leash = tmp_path / "leash"
    context = {"TWINSTREAM_CONTEXT": f'{{"supervision": "{told}"}}', "TWINSTREAM_LEASH": f"300:{leash}"}
    runner = command(home, topic, "--standby", **context)
    until(lambda: emitted(home) == 1)
    found = look(engine.ledger, told)
    assert (found.wanted, found.over, found.gone, leash.exists()) == (True, False, None, True)
    held = streaming(engine.ledger, generation.id)
    assert held is not None
    waiting = command(home, topic, "--standby", TWINSTREAM_CONTEXT=f'{{"supervision": "{lapsed}"}}')
    until(lambda: "seen" in look(engine.ledger, lapsed).said)
    engine.ledger.runs.renew(engine.ledger.runs.get(lapsed), 0.1)
    assert waiting.wait(60).code == 0
    assert look(engine.ledger, lapsed).said["ended"] == "told to end"
    end(engine.ledger, told)
    assert runner.wait(60).code == 0
    assert streaming(engine.ledger, generation.id) is None


def test_a_runner_under_supervision_tells_there_why_it_could_not_start(home: KafkaHome, topic: Topic) -> None:
    engine = home.engine()
    generation = engine.generation(engine.definition("page_views"), create=True)
    supervision = begin(engine.ledger, generation, 600, {})
    home.change("page_views", "where page is not null", "where page is null")
    runner = command(home, topic, TWINSTREAM_CONTEXT=f'{{"supervision": "{supervision}"}}')
    assert runner.wait(60).code == 1
    error = look(engine.ledger, supervision).said["error"]
    assert error["kind"] == "DefinitionChanged"


@contextmanager
def running_and_waiting(home: KafkaHome) -> Iterator[tuple[Streaming, Streaming, list[str]]]:
    """One that has committed a record, one that stands by, and what that one said."""
    told: list[str] = []

    class Waiting(Progress):
        def note(self, text: str) -> None:
            told.append(text)

    with Streaming(home) as first:
        until(lambda: emitted(home) == 1)
        with Streaming(home, STANDBY, Waiting()) as second:
            until(lambda: bool(told))
            yield first, second, told


def comes_on(home: KafkaHome) -> None:
    """Waits for two more txids."""
    known = frontier(home)
    until(lambda: frontier(home) > known + 1)


def files(home: KafkaHome) -> set[Path]:
    """All that is in the pipeline's tables."""
    return set((home.folder / "tables").rglob("*"))


def epoch(home: KafkaHome) -> int:
    """Of whoever holds the lease, or held it last."""
    engine = home.engine()
    holder = engine.ledger.leases.holder(engine.generation(engine.definition("page_views")).id)
    return holder[1] if holder else 0


def frontier(home: KafkaHome) -> int:
    generation = home.engine().ledger.generations.current("page_views")
    return generation.frontier if generation else 0
