"""Planning from a real broker: ranges without gaps, partitions that come, records that go, and clear words for both."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException

from bin.lib.local.kafka import Kafka
from bin.lib.local.processes import Started, stop
from tests.conftest import ROOT
from tests.kafka.topic import Topic
from twinstream import KafkaSource
from twinstream.errors import SettingsError, SourceChanged, SourceUnreadable
from twinstream.sources.base import Places, Plan
from twinstream.sources.kafka import broker as asking
from twinstream.sources.kafka.spans import Span, from_payload, to_payload
from twinstream.transaction import Range

SCHEMA = "id string, at timestamp"


class History:
    """What was planned before."""

    def __init__(self) -> None:
        self.planned: list[Range] = []

    def last(self) -> Range | None:
        return self.planned[-1] if self.planned else None

    def known_folders(self) -> dict[str, int]:
        return {}

    def claimed(self, folder: str) -> set[str]:
        return set()


class Planner:
    def __init__(self, topic: Topic, **options: Any) -> None:
        self.source = KafkaSource(**({"topics": topic.name, "schema": SCHEMA} | options))
        self.places = Places(Path(), connections={"kafka_default": topic.address})
        self.history = History()

    def plan(self, batch_records: int = 10, enough: int = 1 << 40) -> Plan:
        found = self.source.plan(self.places, self.history, batch_records, enough)
        self.history.planned += found.ranges
        return found

    def problem(self) -> str:
        found = self.plan().problem
        assert isinstance(found, SourceChanged | SourceUnreadable)
        assert found.untouched
        assert found.next_step
        return found.what


def offsets(ranges: list[Range]) -> list[tuple[str, int, int]]:
    """Every offset of the ranges; raises on one that is there twice."""
    found = [
        (topic, partition, offset)
        for one in ranges
        for (topic, partition), span in from_payload(one.payload)[1].items()
        for offset in range(span.start, span.end)
    ]
    assert len(found) == len(set(found))
    return sorted(found)


def everything(topic: Topic, *ends: int) -> list[tuple[str, int, int]]:
    return [(topic.name, number, offset) for number, end in enumerate(ends) for offset in range(end)]


def test_ranges_hold_every_offset_once(topic: Topic) -> None:
    planner = Planner(topic)
    assert planner.plan().ranges == ()
    for number, count in enumerate((25, 3, 0)):
        topic.send(["{}"] * count, number)
    assert planner.source.waiting(planner.places, planner.history) == 28
    planner.plan()
    assert [one.records for one in planner.history.planned] == [9, 9, 10]
    topic.send(["{}"] * 4, 2)
    planner.plan()
    assert offsets(planner.history.planned) == everything(topic, 25, 3, 4)
    assert planner.plan().ranges == ()


def test_a_long_backlog_is_planned_bit_by_bit(topic: Topic) -> None:
    topic.send(["{}"] * 40, 0)
    planner = Planner(topic)
    assert planner.plan(enough=256 * 20).more
    assert len(planner.history.planned) == 2
    while planner.plan(enough=256 * 20).more:
        pass
    assert offsets(planner.history.planned) == everything(topic, 40)


def test_partitions_and_topics_that_come_later_are_read_from_their_beginning(broker: Kafka) -> None:
    first = Topic(broker.address).make(1)
    planner = Planner(first, topics=(), pattern=f"{first.name}.*")
    first.send(["{}"] * 5, 0)
    planner.plan()
    first.grow(2)
    first.send(["{}"] * 3, 1)
    second = Topic(broker.address, f"{first.name}-more").make(1)
    second.send(["{}"] * 2, 0)
    Topic(broker.address, f"not-{first.name}").make(1).send(["{}"], 0)
    planner.plan()
    assert offsets(planner.history.planned) == sorted([*everything(first, 5, 3), *everything(second, 2)])


def test_what_is_not_committed_yet_is_not_there_yet(topic: Topic) -> None:
    planner = Planner(topic)
    with topic.transaction() as (producer, send):
        send(["{}"] * 3, 0)
        topic.send(["{}"] * 2, 0)
        assert planner.plan().ranges == ()
        producer.commit_transaction(30)
    while not planner.plan().ranges:
        """The broker writes the mark a moment later."""
    assert len(offsets(planner.history.planned)) == 6, "five records and the mark of the commit"


def test_retention_that_overtakes_is_a_clear_stop(topic: Topic) -> None:
    planner = Planner(topic)
    topic.send(["{}"] * 10, 0)
    planner.plan()
    topic.send(["{}"] * 10, 0)
    topic.forget(0, 15)
    assert planner.problem() == (
        f"Partition 0 of topic {topic.name} has deleted offsets 10 to 14 before they were read: "
        "its retention is shorter than the lag."
    )
    changes = planner.source.changes(planner.places, planner.history.planned)
    assert "has deleted offsets 0 to 14" in changes[0].what
    assert offsets(planner.source.remaining(planner.places, planner.history.planned)) == []


def test_retention_that_comes_near_is_a_warning(topic: Topic) -> None:
    planner = Planner(topic)
    topic.send(["{}"] * 20, 0)
    planner.plan()
    topic.send(["{}"] * 80, 0)
    assert planner.plan().warnings == ()
    topic.send(["{}"] * 80, 0)
    topic.forget(0, 98)
    assert planner.plan().warnings == (
        f"Partition 0 of topic {topic.name} will soon delete what was not planned: "
        "its retention has come within 2 of the next offset.",
    )


def test_records_that_the_broker_has_lost_are_a_clear_stop(topic: Topic) -> None:
    planner = Planner(topic)
    topic.send(["{}"] * 3, 0)
    (planned,) = planner.plan().ranges
    ids, spans = from_payload(planned.payload)
    planner.history.planned = [replace(planned, payload=to_payload(ids, {**spans, (topic.name, 0): Span(0, 9)}))]
    assert planner.problem() == f"Partition 0 of topic {topic.name} ends at offset 3, but offsets up to 9 were planned."
    assert "ends at offset 3 now" in planner.source.changes(planner.places, planner.history.planned)[0].what


def test_a_topic_that_was_made_anew_is_noticed(topic: Topic) -> None:
    planner = Planner(topic)
    topic.send(["{}"] * 3, 0)
    planner.plan()
    topic.delete()
    remake(topic)
    topic.send(["{}"] * 9, 0)
    assert f"The topic {topic.name} was deleted and made anew" in planner.problem()
    assert "made anew" in planner.source.changes(planner.places, planner.history.planned)[0].what


def remake(topic: Topic) -> None:
    """The broker goes on to know the old topic for a moment."""
    while True:
        try:
            topic.make()
            return
        except KafkaException:
            time.sleep(0.1)


def test_a_missing_topic_is_named(broker: Kafka) -> None:
    assert Planner(Topic(broker.address, "nowhere")).problem() == (
        "There is no topic nowhere on the brokers of kafka_default."
    )


def test_a_broker_that_does_not_answer_is_named(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "SECONDS", 2.0)
    planner = Planner(topic)
    planner.places = Places(Path(), connections={"kafka_default": "127.0.0.1:9"})
    assert planner.problem().startswith("The brokers of kafka_default (127.0.0.1:9) do not answer")
    planner.places = Places(Path())
    with pytest.raises(SettingsError, match="kafka_default is not set"):
        planner.source.waiting(planner.places, planner.history)


def test_wrong_credentials_are_told_from_a_broker_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = Kafka(tmp_path, ROOT / ".kafka", password="let me in")
    process = kafka.start()
    try:
        kafka.wait(process)
        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "twinstream"}
        good = login | {"sasl.password": "let me in"}
        topic = Topic(kafka.address, options=good).make(1)
        topic.send(["{}"], 0)
        planner = Planner(topic)
        planner.places = Places(Path(), connections={"kafka_default": _connection(kafka, good)})
        assert len(planner.plan().ranges) == 1
        monkeypatch.setattr(asking, "SECONDS", 3.0)
        bad = login | {"sasl.password": "x y"}
        planner.places = Places(Path(), connections={"kafka_default": _connection(kafka, bad)})
        said = planner.problem()
        assert said.startswith("The brokers of kafka_default refuse us")
        assert "x y" not in said
    finally:
        stop(Started.of("kafka", process))


def _connection(kafka: Kafka, options: dict[str, str]) -> str:
    return json.dumps({"bootstrap.servers": kafka.address, **options})
