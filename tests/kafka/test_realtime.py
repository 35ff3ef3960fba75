"""Real-time mode on a real broker: rows in milliseconds, nothing lost however it ends, the books closed afterwards."""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from bin.lib.local.kafka import Kafka
from tests.faults.processes import Command
from tests.kafka.chain import NAME, Chain, rows
from tests.kafka.home import event
from tests.kafka.streaming import until
from tests.kafka.topic import Topic
from twinstream import failpoints
from twinstream.errors import LeaseHeld, Refused, SettingsError, SinkUnwritable
from twinstream.ledger.journal import PAUSED, STOP_ASKED
from twinstream.reconcile.reconcile import Reconciler
from twinstream.reconcile.result import Verdict
from twinstream.runtime.progress import Progress
from twinstream.runtime.realtime import RealTimeRequest
from twinstream.runtime.served import KIND, Checkpoint

LEAST = "spark.sql.streaming.realTimeMode.minBatchDuration"
SOON = RealTimeRequest("2 seconds", wait_seconds=0)


@pytest.fixture
def chain(folder: Path, spark: Any, broker: Kafka) -> Iterator[Chain]:
    spark.conf.set(LEAST, "500ms")
    yield Chain.make(folder, spark, Topic(broker.address).make(1), Topic(broker.address).make(1))
    spark.conf.unset(LEAST)


class Serving:
    """A real-time run in a thread of its own."""

    def __init__(self, chain: Chain, request: RealTimeRequest = SOON) -> None:
        self.stop = threading.Event()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(chain, request))
        self._thread.start()

    def _run(self, chain: Chain, request: RealTimeRequest) -> None:
        try:
            chain.home.engine().real_time(NAME, request, Progress(), self.stop)
        except BaseException as error:
            self.error = error

    def until_sent(self, chain: Chain, count: int) -> None:
        until(lambda: self.error is not None or chain.sink._end(0) >= count)
        assert self.error is None

    def wait(self) -> None:
        self._thread.join(120)
        assert not self._thread.is_alive()

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.wait()


def generation(chain: Chain) -> Any:
    return chain.home.engine().ledger.generations.current(NAME)


def checkpoint(chain: Chain) -> Checkpoint:
    return Checkpoint.of(chain.home.settings.places(NAME), generation(chain))


def there(chain: Chain, count: int) -> None:
    until(lambda: chain.sink._end(0) >= count)


def latencies(chain: Chain, records: int) -> list[float]:
    """Seconds from sending a record to a consumer that waits for what comes of it."""
    consumer = Consumer({"bootstrap.servers": chain.sink.address, "group.id": "watching", "fetch.wait.max.ms": 5})
    consumer.assign([TopicPartition(chain.sink.name, 0, chain.sink._end(0))])
    producer = chain.source.producer(**{"linger.ms": 0})
    found = []
    for number in range(records):
        began = time.monotonic()
        producer.produce(chain.source.name, event(1_000 + number))
        producer.flush()
        message: Any = consumer.poll(30)
        assert json.loads(message.value())["event_id"] == f"e{1_000 + number}"
        found.append(time.monotonic() - began)
    consumer.close()
    return found


def test_rows_come_in_milliseconds_and_what_was_served_is_proven_but_not_sent_again(chain: Chain) -> None:
    chain.source.send([event(0), "broken", event(1, page="/b")], 0)
    with Serving(chain) as running:
        running.until_sent(chain, 1)
        with pytest.raises(LeaseHeld, match="served in real time"):
            chain.drain()
        with pytest.raises(LeaseHeld):
            chain.home.engine().real_time(NAME, SOON, Progress())
        found = latencies(chain, 50)
        until(lambda: checkpoint(chain).batches() > 0)
        facts = chain.home.engine().ledger.runs.newest(generation(chain).id)[0]
        assert (facts.kind, (facts.result or {})["real_time"]) == (KIND, "2 seconds")
    assert running.error is None
    print(f"real-time latency: median {statistics.median(found) * 1000:.0f} ms, highest {max(found) * 1000:.0f} ms")
    assert statistics.median(found) < 0.5
    sent = chain.sent()
    assert rows(sent) == chain.expected()
    assert sent[0].headers == {
        "twinstream-pipeline": NAME,
        "twinstream-generation": generation(chain).name,
        "twinstream-id": f"{generation(chain).name}:{chain.source.name}/0/0",
    }
    assert generation(chain).last_txid, "what was served is planned"
    assert not checkpoint(chain).folder.exists()
    chain.source.send([event(2)], 0)
    chain.drain()
    assert rows(chain.sent()) == chain.expected()
    assert len(chain.sent()) == len(sent) + 1, "only what came after the run"
    counted = chain.home.accounting(NAME).values()
    assert [sum(one[name] for one in counted) for name in ("read", "dead", "filtered")] == [54, 1, 1]
    assert Reconciler(chain.home.engine(), Progress()).reconcile(NAME).verdict is Verdict.EQUAL


@pytest.mark.parametrize("asked", [PAUSED, STOP_ASKED])
def test_it_goes_on_behind_what_was_drained_and_ends_when_asked(chain: Chain, asked: str) -> None:
    chain.source.send([event(0)], 0)
    chain.drain()
    chain.source.send([event(1)], 0)
    running = Serving(chain)
    running.until_sent(chain, 2)
    chain.home.engine().ledger.journal.add(generation(chain).id, asked, "a test")
    running.wait()
    assert running.error is None
    chain.drain()
    assert rows(chain.sent()) == chain.expected()


def test_killed_nothing_is_lost_and_what_comes_twice_is_the_same_record(chain: Chain) -> None:
    chain.source.send([event(number) for number in range(5)], 0)
    environment = {
        "TWINSTREAM_HOME": str(chain.home.folder),
        "TWINSTREAM_PIPELINES": str(chain.home.pipelines),
        "TWINSTREAM_KAFKA_DEFAULT": chain.source.address,
        "TWINSTREAM_MASTER": "local[2]",
    }
    command = Command(chain.home.folder, ["continuous", NAME, "--real-time", "5 seconds"], environment)
    try:
        there(chain, 5)
        until(lambda: checkpoint(chain).batches() > 0)
        chain.source.send([event(number) for number in range(5, 8)], 0)
        there(chain, 8)
    finally:
        os.kill(command.pid, signal.SIGKILL)
        command.wait()
    chain.source.send([event(8)], 0)
    chain.drain()
    keys = [one.key for one in chain.sent()]
    assert set(keys) == {f"e{number}" for number in range(9)}
    assert not {f"e{number}" for number in range(5)} & {key for key in keys if keys.count(key) > 1}
    assert sum(one["emitted"] for one in chain.home.accounting(NAME).values()) == 9


def test_asked_to_terminate_the_command_ends_well(chain: Chain) -> None:
    chain.source.send([event(1)], 0)
    environment = {
        "TWINSTREAM_HOME": str(chain.home.folder),
        "TWINSTREAM_PIPELINES": str(chain.home.pipelines),
        "TWINSTREAM_KAFKA_DEFAULT": chain.source.address,
        "TWINSTREAM_MASTER": "local[2]",
    }
    command = Command(chain.home.folder, ["continuous", NAME, "--real-time", "5 seconds"], environment)
    there(chain, 1)
    os.kill(command.pid, signal.SIGTERM)
    ended = command.wait(120)
    assert ended.code == 0, ended.err
    assert "real-time mode is at-least-once" in ended.err
    assert (generation(chain).last_txid, generation(chain).frontier) == (1, 0)


@pytest.mark.parametrize(
    "point", ["realtime.forget:before", "realtime.begin:before", "realtime.begin:after", "realtime.forget:before@2",
              "realtime.forget:after@2"]
)  # fmt: skip
def test_ended_there_nothing_is_lost(chain: Chain, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    failpoints._passes.clear()
    monkeypatch.setenv(failpoints.VARIABLE, f"{point}!error")
    chain.source.send([event(1)], 0)
    running = Serving(chain, RealTimeRequest("500 milliseconds", 1, 0))
    running.wait()
    assert isinstance(running.error, failpoints.Failed)
    monkeypatch.delenv(failpoints.VARIABLE)
    chain.source.send([event(2)], 0)
    chain.drain()
    assert rows(chain.sent()) == chain.expected()


def test_a_checkpoint_of_another_pipeline_or_generation_is_refused(chain: Chain) -> None:
    chain.source.send([event(1)], 0)
    chain.drain()
    other = Checkpoint(checkpoint(chain).folder.with_name("elsewhere"), "others", "g7-beef")
    other.begin({}, {})
    shutil.move(other.folder, checkpoint(chain).folder)
    with pytest.raises(Refused, match="belongs to others, generation g7-beef"):
        chain.home.engine().real_time(NAME, SOON, Progress())
    with pytest.raises(Refused, match="belongs to others"):
        chain.drain()


def test_what_it_needs_is_asked_for_before_it_starts(chain: Chain) -> None:
    chain.source.grow(3)
    with pytest.raises(Refused, match="the source has 3, and Spark has room for 2 tasks"):
        chain.home.engine().real_time(NAME, SOON, Progress())
    chain.home.change(NAME, chain.sink.name, "nowhere")
    with pytest.raises(SinkUnwritable, match="no topic nowhere"):
        chain.home.engine().real_time(NAME, SOON, Progress())


def test_more_often_than_spark_notes_how_far_it_is_is_told(chain: Chain) -> None:
    with pytest.raises(SettingsError, match="'100 milliseconds' is more often"):
        chain.home.engine().real_time(NAME, RealTimeRequest("100 milliseconds", wait_seconds=0), Progress())
