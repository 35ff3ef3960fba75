"""What happens to a topic while it is streamed: it grows, is flooded, is made anew; producers repeat themselves."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import pytest

from bin.lib.local.kafka import Kafka
from tests.e2e.home import assert_true
from tests.kafka.home import KafkaHome, event
from tests.kafka.streaming import Streaming, counted, facts, planned, until
from tests.kafka.test_drain import events
from tests.kafka.test_plan import everything, offsets, remake
from tests.kafka.topic import Topic
from twinstream.errors import SourceChanged
from twinstream.runtime.continuous import Done, wanted_records
from twinstream.runtime.status import status_of


@pytest.fixture
def home(folder: Path, spark: Any, topic: Topic) -> KafkaHome:
    made = KafkaHome.on(folder, spark, topic)
    made.change("page_views", "batch_records=100_000", "batch_records=100")
    return made


def sent(topic: Topic) -> int:
    return sum(offset + 1 for offset in topic._sent.values())


def test_partitions_and_two_producers_that_send_the_same(folder: Path, spark: Any, broker: Kafka, seed: int) -> None:
    """A partition that comes while the query runs is read from its beginning; who sends twice is counted twice."""
    topic = Topic(broker.address).make(1)
    home = KafkaHome.on(folder, spark, topic)
    same = events(random.Random(seed), 60)
    topic.send(same)
    with Streaming(home) as running:
        until(lambda: counted(home) == sent(topic))
        topic.grow(3)
        producers = [threading.Thread(target=topic.send, args=(same, number)) for number in (1, 2)]
        for producer in producers:
            producer.start()
        for producer in producers:
            producer.join()
        until(lambda: counted(home) == 3 * len(same))
    assert running.error is None
    assert offsets(planned(home)) == everything(topic, *(topic._sent[number] + 1 for number in range(3)))
    assert_true(home, "page_views", "side")


def test_a_topic_that_is_made_anew_ends_it_by_name(home: KafkaHome, topic: Topic) -> None:
    topic.send([event(1), event(2)], 0)
    running = Streaming(home)
    until(lambda: counted(home) == 2)
    before = home.read("page_views")
    topic.delete()
    remake(topic)
    topic.send([event(number) for number in range(9)], 0)
    running.wait()
    assert isinstance(running.error, SourceChanged)
    assert f"The topic {topic.name} was deleted and made anew" in running.error.what
    assert home.read("page_views") == before


def test_a_burst_waits_in_the_topic_is_seen_and_drains(home: KafkaHome, topic: Topic, seed: int) -> None:
    """Twenty times the steady rate: batches grow until the lag is gone, and stay as they are when it is."""
    chance = random.Random(seed)
    topic.send(events(chance, 50))
    with Streaming(home) as running:
        until(lambda: counted(home) == 50)
        until(lambda: "most_records" in facts(home))
        before = facts(home)["most_records"]
        topic.send(events(chance, 20 * 50))
        until(lambda: behind(home) > 0)
        until(lambda: counted(home) == sent(topic))
        until(lambda: behind(home) == 0)
        settled = facts(home)["most_records"]
        topic.send(events(chance, 50))
        until(lambda: counted(home) == sent(topic))
        assert facts(home)["most_records"] == settled
    assert running.error is None
    assert before == 100 < settled
    assert max(one.records for one in planned(home)) <= 100 + 3, "txids stay as large as the definition says"
    assert_true(home, "page_views", "side")


def behind(home: KafkaHome) -> float:
    """What `twinstream status` shows."""
    engine = home.engine()
    found = status_of(engine.ledger, engine.definition("page_views"))["continuous"]
    return float(found.get("behind", 0))


def test_only_a_full_batch_says_that_batches_should_have_another_size() -> None:
    assert wanted_records(Done(), 100, 60.0) == 100
    assert wanted_records(Done(89, 0.1), 100, 60.0) == 100
    assert wanted_records(Done(100, 15.0), 100, 60.0) == 400
    assert wanted_records(Done(100, 16.0), 100, 60.0) == 100
    assert wanted_records(Done(100, 120.0), 100, 60.0) == 100
    assert wanted_records(Done(100, 121.0), 100, 60.0) == 50
    assert wanted_records(Done(1, 121.0), 1, 60.0) == 1
