"""A broker of a benchmark's own, its topics, and what sends events to them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.lib.home import ROOT

PARTITIONS = 2


@contextmanager
def broker(home: Path) -> Iterator[str]:
    """Runs a broker; its address."""
    from bin.lib.local.kafka import Kafka
    from bin.lib.local.processes import Started, stop

    kafka = Kafka(home / "kafka", ROOT / ".kafka")
    process = kafka.start()
    try:
        kafka.wait(process)
        yield kafka.address
    finally:
        stop(Started.of("kafka", process))


def make_topic(address: str, topic: str, config: Mapping[str, str] | None = None) -> None:
    """Makes a topic; one of that name that is there already goes first, with all that it holds."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address})
    if topic in admin.list_topics(timeout=30).topics:
        admin.delete_topics([topic])[topic].result(30)
    while True:
        try:
            admin.create_topics([NewTopic(topic, PARTITIONS, 1, config=dict(config or {}))])[topic].result(30)
            break
        except KafkaException:
            time.sleep(0.1)
    while not _is_led(admin.list_topics(topic, timeout=30).topics[topic].partitions):
        time.sleep(0.1)


def _is_led(partitions: Mapping) -> bool:
    return len(partitions) == PARTITIONS and all(one.leader >= 0 for one in partitions.values())


def send_backlog(spark, address: str, topic: str, events: int) -> None:
    """Sends events of one page view each, 80 to a second of event time."""
    rows = (
        spark.range(events)
        .coalesce(1)
        .selectExpr(
            "to_json(named_struct('event_id', concat('e', id), 'page', concat('/', pmod(xxhash64(id), 50)),"
            " 'amount', cast(pmod(xxhash64(id, 1), 100000) / 100 as decimal(12,2)),"
            " 'at', timestamp_seconds(1772359200 + id div 80))) as value"
        )
    )
    rows.write.format("kafka").option("kafka.bootstrap.servers", address).option("topic", topic).save()


class Steady(threading.Thread):
    """Sends so many events at a steady rate."""

    def __init__(self, address: str, topic: str, rate: float, count: int) -> None:
        super().__init__(daemon=True)
        self._address, self._topic, self._rate = address, topic, rate
        self.count = count
        self.began = 0.0

    def run(self) -> None:
        self.began = time.time()
        self.send()

    def send(self) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._address, "linger.ms": 5})
        began = time.monotonic()
        for number in range(self.count):
            if (early := began + number / self._rate - time.monotonic()) > 0:
                time.sleep(max(early, 0.01))
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            event = {"event_id": f"e{number}", "page": f"/{number % 50}", "amount": "1.50", "at": at}
            producer.produce(self._topic, value=json.dumps(event), partition=number % PARTITIONS)
            producer.poll(0)
        producer.flush(30)
