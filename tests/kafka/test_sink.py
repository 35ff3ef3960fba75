"""KafkaSink on a real broker: what is committed is produced, in order, and again only with the same headers."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from bin.lib.local.kafka import Kafka
from tests.e2e.home import assert_true
from tests.faults.processes import Command
from tests.kafka.chain import NAME, Chain, rows
from tests.kafka.home import event
from tests.kafka.test_drain import events
from tests.kafka.topic import Topic
from twinstream.engine.topic import producing
from twinstream.errors import Fenced, SinkUnwritable
from twinstream.sources.kafka import broker as asking

FIELDS = 'fields={"message_id": "header:twinstream-id"},'


@pytest.fixture
def chain(folder: Path, spark: Any, topic: Topic, broker: Kafka) -> Chain:
    return Chain.make(folder, spark, topic, Topic(broker.address).make(2))


def frontier(chain: Chain) -> int:
    engine = chain.home.engine()
    return engine.generation(engine.definition(NAME)).frontier


def produced(chain: Chain) -> int | None:
    engine = chain.home.engine()
    return engine.produced(engine.definition(NAME))


def test_rows_are_in_the_topic_once_in_txid_order_with_where_they_come_from(chain: Chain, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(2):
        chain.source.send([*events(chance, 90), "broken"])
        chain.drain(group=2)
    sent = chain.sent()
    assert rows(sent) == chain.expected()
    assert all(one.key == one.value["event_id"] for one in sent)
    generation = chain.home.engine().ledger.generations.current(NAME)
    assert generation is not None
    assert {one.headers["twinstream-pipeline"] for one in sent} == {NAME}
    assert {one.place[0] for one in sent} == {generation.name}
    assert all(one.headers["twinstream-id"] == "{}:{}:{}".format(*one.place) for one in sent)
    counted = chain.home.accounting(NAME)
    for txid, some in groupby(sorted(one.place for one in sent), key=lambda place: place[1]):
        assert [sequence for *_, sequence in some] == list(range(1, counted[txid]["emitted"] + 1))
    for number in range(2):
        there = [dict(message.headers()) for message in chain.sink.read(number, 0, chain.sink._end(number))]
        places = [(int(one["twinstream-txid"]), int(one["twinstream-sequence"])) for one in there]
        assert places == sorted(places)
    assert produced(chain) == frontier(chain)
    assert chain.drain().txids == 0
    assert len(chain.sent()) == len(sent)


def test_late_rows_are_not_produced(chain: Chain) -> None:
    chain.home.change(NAME, 'late="keep"', 'late="side"')
    chain.source.send([event(1, at="2026-03-01T12:00:00Z")], 0)
    chain.drain()
    chain.source.send([event(2, at="2026-03-01T10:00:00Z"), event(3, at="2026-03-01T12:00:01Z")], 0)
    chain.drain()
    assert sorted(one.value["event_id"] for one in chain.sent()) == ["e1", "e3"]
    assert [one["late"] for one in chain.home.accounting(NAME).values()] == [0, 1]


def test_another_column_can_be_the_key_and_every_column_is_there(chain: Chain) -> None:
    chain.home.change(NAME, f"KafkaSink({chain.sink.name!r})", f"KafkaSink({chain.sink.name!r}, key='page')")
    chain.home.change(NAME, "select event_id, page,", "select event_id, page, cast(null as string) as nothing,")
    chain.source.send([event(1, at="2026-03-01T12:00:00.123456Z")], 0)
    chain.drain()
    (sent,) = chain.sent()
    assert sent.key == "/a"
    assert sent.value == {
        "event_id": "e1", "page": "/a", "nothing": None, "amount": 1.5, "at": "2026-03-01T12:00:00.123456Z"
    }  # fmt: skip


@pytest.mark.parametrize("point", ["sink.produced:before", "sink.produced:after"])
def test_killed_there_rows_come_again_only_with_the_same_headers(chain: Chain, point: str) -> None:
    chain.source.send(events(random.Random(3), 50))
    environment = {
        "TWINSTREAM_HOME": str(chain.home.folder),
        "TWINSTREAM_PIPELINES": str(chain.home.pipelines),
        "TWINSTREAM_KAFKA_DEFAULT": chain.source.address,
        "TWINSTREAM_MASTER": "local[1]",
        "TWINSTREAM_FAILPOINT": point,
    }
    command = Command(chain.home.folder, ["drain", NAME, "--group", "1"], environment)
    assert command.wait(240).code == -signal.SIGKILL
    before = len(chain.sent())
    assert 0 < before < sum(chain.expected().values())
    chain.drain()
    once: dict[Any, Any] = {}
    for one in chain.sent():
        assert once.setdefault(one.place, (one.key, one.value)) == (one.key, one.value)
    assert rows(chain.sent()) - chain.expected() == ({} if point.endswith("after") else first_rows(chain, before))
    assert len(once) == sum(chain.expected().values())


def first_rows(chain: Chain, count: int) -> Any:
    """What was sent before the kill."""
    first = [one for one in chain.sent() if one.place[1] == 1]
    assert len(first) == 2 * count
    return rows([one for one, _ in zip(sorted(first, key=lambda one: one.place)[::2], range(count), strict=True)])


def test_a_second_pipeline_reads_what_the_first_one_wrote(chain: Chain, seed: int) -> None:
    home = chain.home
    home.change("page_views", f"topics={chain.source.name!r},", f"topics={chain.sink.name!r}, {FIELDS}")
    home.change("page_views", 'record_id="event_id"', 'record_id="message_id"')
    chance = random.Random(seed)
    for _ in range(2):
        chain.source.send(events(chance, 60))
        chain.drain()
        home.drain("page_views")
    assert_true(home, "page_views", "side")
    counted = home.accounting("page_views").values()
    assert sum(one["emitted"] + one["late"] for one in counted) == sum(chain.expected().values())


def forbidden(chain: Chain) -> None:
    """Everybody may look at the topic, and nobody may write to it."""
    for operation, permission in (
        (AclOperation.DESCRIBE, AclPermissionType.ALLOW),
        (AclOperation.WRITE, AclPermissionType.DENY),
    ):
        name = (ResourceType.TOPIC, chain.sink.name, ResourcePatternType.LITERAL)
        rule = AclBinding(*name, "User:*", "*", operation, permission)
        for answer in chain.sink._admin.create_acls([rule]).values():
            answer.result(30)


def missing(chain: Chain) -> None:
    chain.home.change(NAME, chain.sink.name, "nowhere")


def gone(chain: Chain) -> None:
    chain.home.change(NAME, f"KafkaSink({chain.sink.name!r})", f"KafkaSink({chain.sink.name!r}, 'kafka_gone')")


def too_small(chain: Chain) -> None:
    chain.home.change(NAME, chain.sink.name, small := f"{chain.sink.name}-small")
    Topic(chain.sink.address, small).make(1, {"max.message.bytes": "150"})


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (gone, r"The brokers of kafka_gone \(127.0.0.1:9\) do not answer"),
        (missing, "There is no topic nowhere on the brokers of kafka_default"),
        (forbidden, "do not let us write to the topic"),
        (too_small, "A row is larger than the topic"),
    ],
)
def test_a_topic_that_cannot_be_written_is_one_clear_error_and_nothing_is_lost(
    chain: Chain, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Chain], None], says: str
) -> None:
    file = chain.home.pipelines / f"{NAME}.py"
    good = file.read_text()
    chain.source.send([event(number) for number in range(30)], 0)
    spoil(chain)
    monkeypatch.setattr(asking, "SECONDS", 2.0)
    monkeypatch.setattr(type(chain.home), "settings", property(with_gone(chain)))
    with pytest.raises(SinkUnwritable, match=says) as error:
        chain.drain(group=1)
    assert "stays committed" in error.value.untouched
    assert (frontier(chain), produced(chain)) == (1, 0)
    chain.home.engine().fold(NAME)
    chain.home.engine().clean(NAME, 0, 0)
    file.write_text(good)
    fresh = Topic(chain.sink.address).make(1)
    chain.home.change(NAME, chain.sink.name, fresh.name)
    chain.sink = fresh
    chain.drain()
    assert rows(chain.sent()) == chain.expected()


def with_gone(chain: Chain) -> Callable[[Any], Any]:
    from twinstream.settings import Settings

    return lambda home: Settings.from_env(
        {
            "TWINSTREAM_HOME": str(home.folder),
            "TWINSTREAM_PIPELINES": str(home.pipelines),
            "TWINSTREAM_KAFKA_DEFAULT": chain.source.address,
            "TWINSTREAM_KAFKA_GONE": json.dumps({"bootstrap.servers": "127.0.0.1:9"}),
        }
    )


def test_a_runner_that_was_taken_over_from_sends_nothing(chain: Chain) -> None:
    chain.source.send([event(1)], 0)
    engine = chain.home.engine()
    definition = engine.definition(NAME)
    generation = engine.generation(definition, create=True)
    store = engine.store(definition, generation)
    store.create()
    topic = producing(engine, definition, generation)
    assert topic is not None
    chain.home.change(NAME, chain.sink.name, "nowhere")
    with pytest.raises(SinkUnwritable):
        chain.drain()
    assert topic.is_behind()
    zombie = engine.ledger.leases.acquire(generation.id, "a zombie", 60)
    engine.ledger.leases.acquire(generation.id, "its heir", 60, lambda _: True)
    with pytest.raises(Fenced):
        topic.produce(zombie)
    assert chain.sent() == []


def test_a_new_generation_is_produced_anew_once_readers_see_it(chain: Chain) -> None:
    chain.source.send([event(number) for number in range(10)], 0)
    chain.drain()
    chain.home.change(NAME, "where page <> '/b'", "where page <> '/c'")
    engine = chain.home.engine()
    from twinstream.engine import DrainRequest

    engine.build(NAME, DrainRequest(wait_seconds=0))
    assert len(chain.sent()) == 10, "nobody has promoted it yet"
    engine.promote(NAME, unproven=True)
    chain.drain()
    sent = chain.sent()
    assert len(sent) == 20
    assert sorted({one.place[0].partition("-")[0] for one in sent}) == ["g1", "g2"]
