"""Events generated into a topic: what `generate` said is what a drain finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bin.lib.local.kafka import Kafka
from tests.e2e.commands import commands_on
from tests.e2e.home import assert_true
from tests.kafka.home import KafkaHome
from tests.kafka.topic import Topic


def test_a_topic_is_made_and_filled(
    folder: Path, spark: Any, broker: Kafka, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = Topic(broker.address)
    home = KafkaHome.on(folder, spark, topic)
    commands = commands_on(home, monkeypatch, capsys)
    monkeypatch.setenv("TWINSTREAM_KAFKA_DEFAULT", broker.address)
    said = commands.good("generate", "page_views", "--events", "500", "--poison", "0.02", "--json").data
    assert said["to"] == f"the topic {topic.name}"
    drained = commands.good("drain", "page_views", "--json").data
    assert (drained["records"], drained["dead"]) == (500, said["poison"])
    assert_true(home, "page_views", "side")


def test_parts_of_a_record_travel_apart_from_its_value(
    folder: Path, spark: Any, broker: Kafka, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = Topic(broker.address)
    home = KafkaHome.on(folder, spark, topic)
    home.change(
        "page_views",
        'schema="event_id string, page string, ',
        'fields={"event_id": "key", "page": "header:page"}, schema="',
    )
    commands = commands_on(home, monkeypatch, capsys)
    monkeypatch.setenv("TWINSTREAM_KAFKA_DEFAULT", broker.address)
    commands.good("generate", "page_views", "--events", "60")
    drained = commands.good("drain", "page_views", "--json").data
    assert (drained["records"], drained["dead"]) == (60, 0)
    sent = [message for number in range(3) for message in topic.read(number, 0, 60)]
    assert len({message.key() for message in sent}) == 60
    assert all(dict(message.headers())["page"] for message in sent)
    assert all(b"event_id" not in message.value() for message in sent)
    assert sum(int(row[3]) for row in home.read("page_views")) == 60


def test_a_broker_that_is_not_there_is_told(
    folder: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from twinstream.generator import topic as writing

    monkeypatch.setattr(writing, "SECONDS", 2.0)
    home = KafkaHome.on(folder, spark, Topic("127.0.0.1:9"))
    commands = commands_on(home, monkeypatch, capsys)
    monkeypatch.setenv("TWINSTREAM_KAFKA_DEFAULT", "127.0.0.1:9")
    said = commands.run("generate", "page_views", "--events", "10", "--json")
    assert said.code == 2
    assert said.error["kind"] == "SourceUnreadable"
