"""Draining a topic: exactly what a plain consumer reads, whatever is in it and whatever happens to it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from bin.lib.local.kafka import Kafka
from tests.e2e.commands import commands_on
from tests.e2e.home import assert_true
from tests.kafka.home import KafkaHome, event
from tests.kafka.topic import Topic
from twinstream.errors import SourceChanged
from twinstream.reconcile.reconcile import Reconciler
from twinstream.reconcile.result import Verdict
from twinstream.runtime.progress import Progress

ODD = [
    event(8) + "\u2028",
    None, "", " ", "null", "[]", '{"event_id": "x"} {"event_id": "y"}', '{"event_id": "x"},', "[" + event(1) + "]",
    event(2) + "}", event(3) + " ", "\n" + event(4) + "\n", b"\xff\xfe", '{"event_id": 5}', event(6, amount="1.234"),
    '{"event_id": "é", "page": "}{", "amount": 1, "at": "2026-03-01T10:00:00Z"}', event(7, at="2099-01-01T00:00:00Z"),
]  # fmt: skip


def events(chance: random.Random, count: int) -> list[str]:
    """Over half an hour, in no order."""
    return [
        event(number, chance.choice(["/a", "/b", "/c"]), f"2026-03-01T10:{chance.randrange(30):02}:00Z",
              f"{chance.randrange(1000)}.{chance.randrange(100):02}")
        for number in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize("group", [1, None])
def test_the_result_is_what_a_plain_consumer_reads(
    folder: Path, spark: Any, topic: Topic, seed: int, group: int | None
) -> None:
    home = KafkaHome.on(folder, spark, topic)
    chance = random.Random(seed)
    for _ in range(2):
        topic.send([*events(chance, 300), *ODD])
        with topic.transaction() as (producer, send):
            send(events(chance, 20), 0)
            producer.abort_transaction(30)
        with topic.transaction() as (producer, send):
            send(events(chance, 20), 1)
            producer.commit_transaction(30)
        home.drain("page_views", batch_records=100, group=group)
    assert_true(home, "page_views", "side")
    assert home.drain("page_views").txids == 0
    result = Reconciler(home.engine(), Progress()).reconcile("page_views")
    assert result.verdict is Verdict.EQUAL


def test_records_that_a_producer_sent_again_count_once(folder: Path, spark: Any, topic: Topic, seed: int) -> None:
    home = KafkaHome.on(folder, spark, topic)
    home.deduplicate("page_views", "10 minutes")
    chance = random.Random(seed)
    for _ in range(2):
        sent = events(chance, 60)
        topic.send([*sent, *chance.sample(sent, 20), *ODD])
        home.drain("page_views", batch_records=40, group=2)
    mended = folder / "mended.json"
    mended.write_text("\n".join([event(3, "/mended"), event(1_000, "/mended"), event(1_000, "/again")]) + "\n")
    engine = home.engine()
    engine.reinject("page_views", mended, "sent by hand", count_late=True)
    topic.send(events(chance, 30))
    home.drain("page_views", batch_records=40, group=2)
    assert_true(home, "page_views", "side")
    assert sum(one["duplicate"] for one in home.accounting("page_views").values()) > 40
    assert Reconciler(home.engine(), Progress()).reconcile("page_views").verdict is Verdict.EQUAL


def test_dead_letters_name_partition_and_offset_and_can_come_back(
    folder: Path, spark: Any, topic: Topic, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = KafkaHome.on(folder, spark, topic)
    topic.send([event(1), "broken", event(2)], 2)
    commands = commands_on(home, monkeypatch, capsys)
    monkeypatch.setenv("TWINSTREAM_KAFKA_DEFAULT", topic.address)
    commands.good("drain", "page_views")
    found = commands.good("dead", "page_views", "--json").data
    assert (found["file"], found["record"]) == (f"{topic.name}/2/1", "broken")
    mended = folder / "mended.json"
    mended.write_text(event(3) + "\n")
    commands.good("reinject", "page_views", str(mended), "--reason", "typed again")
    topic.send([event(4)], 0)
    commands.good("drain", "page_views")
    assert_true(home, "page_views", "side")
    assert sum(one["emitted"] for one in home.accounting("page_views").values()) == 4


def test_records_that_are_lost_after_planning_stop_it_and_can_no_longer_be_proven(
    folder: Path, spark: Any, topic: Topic
) -> None:
    home = KafkaHome.on(folder, spark, topic)
    topic.send(events(random.Random(1), 30), 0)
    home.drain("page_views", batch_records=10)
    before = home.read("page_views")
    topic.forget(0, 15)
    result = Reconciler(home.engine(), Progress()).reconcile("page_views", fresh=True)
    assert [cause for cause in result.causes if "deleted offsets" in cause]
    assert home.read("page_views") == before
    topic.send(events(random.Random(2), 10), 0)
    engine = home.engine()
    definition = engine.definition("page_views")
    engine.plan(definition, engine.generation(definition))
    topic.forget(0, 35)
    with pytest.raises(SourceChanged, match="has deleted offsets 30 to 34"):
        home.drain("page_views")


def test_a_compacted_range_is_not_what_was_read(folder: Path, spark: Any, broker: Kafka) -> None:
    """A compacted topic loses records that have a newer one of their key: the count that was logged tells."""
    topic = Topic(broker.address).make(
        1,
        {
            "cleanup.policy": "compact",
            "segment.ms": "100",
            "min.cleanable.dirty.ratio": "0.01",
            "delete.retention.ms": "1",
        },
    )
    home = KafkaHome.on(folder, spark, topic)
    topic.send(events(random.Random(3), 20), 0, key="same")
    home.drain("page_views")
    while len(topic.read(0, 0, 20)) == 20:
        topic.send([event(99)], 0, key="same")
    result = Reconciler(home.engine(), Progress()).reconcile("page_views", fresh=True)
    assert result.verdict is Verdict.DIFFERENT
    assert [cause for cause in result.causes if "source" in cause.lower()], result.causes
