"""A topic of a real broker as tests use it: made, filled, and read again by a plain consumer."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec  # type: ignore[attr-defined]

SECONDS = 30.0


@dataclass(frozen=True)
class Topic:
    """One topic; its name is its own, so that tests share a broker."""

    address: str
    name: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:10]}")
    options: Mapping[str, str] = field(default_factory=dict)
    _sent: dict[int, int] = field(default_factory=dict)
    """The newest offset of each partition that was written to."""

    def make(self, partitions: int = 3, config: Mapping[str, str] | None = None) -> Topic:
        made = self._admin.create_topics([NewTopic(self.name, partitions, 1, config=dict(config or {}))])
        made[self.name].result(SECONDS)
        return self

    def delete(self) -> None:
        self._sent.clear()
        self._admin.delete_topics([self.name])[self.name].result(SECONDS)

    def grow(self, partitions: int) -> None:
        self._admin.create_partitions([NewPartitions(self.name, partitions)])[self.name].result(SECONDS)

    def forget(self, partition: int, before: int) -> None:
        """What retention does: the partition begins at offset `before` from now on."""
        asked = self._admin.delete_records([TopicPartition(self.name, partition, before)])
        for answer in asked.values():
            answer.result(SECONDS)

    def send(self, values: Iterable[str | bytes | None], partition: int = -1, key: str | None = None) -> None:
        """Returns when everybody can see the records."""
        producer = self.producer()
        for number, value in enumerate(values):
            self._send(producer, value, partition, key or str(number))
        producer.flush(SECONDS)
        for number, offset in list(self._sent.items()):
            while self._end(number) <= offset:
                time.sleep(0.01)

    @contextmanager
    def transaction(self) -> Any:
        """Yields a function that sends within a transaction, which the block's user ends by its producer."""
        producer = self.producer(**{"transactional.id": f"tx-{uuid.uuid4().hex}"})
        producer.init_transactions(SECONDS)
        producer.begin_transaction()

        def send(values: Iterable[str | bytes | None], partition: int = -1) -> None:
            for number, value in enumerate(values):
                self._send(producer, value, partition, str(number))
            producer.flush(SECONDS)

        yield producer, send

    def producer(self, **more: Any) -> Producer:
        return Producer({"bootstrap.servers": self.address, **self.options, **more})

    def read(self, partition: int, start: int, end: int) -> list[Any]:
        """The committed records from offset `start` to `end`, by a consumer that knows nothing of Spark or of us."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.address,
                **self.options,
                "group.id": uuid.uuid4().hex,
                "isolation.level": "read_committed",
                "enable.partition.eof": "true",
                "auto.offset.reset": "error",
            }
        )
        found: list[Any] = []
        try:
            if start < end:
                consumer.assign([TopicPartition(self.name, partition, start)])
            while start < end:
                message: Any = consumer.poll(SECONDS)
                assert message is not None, f"{self.name}/{partition} gave nothing at {start}"
                if message.error() is not None:
                    break  # its end
                start = message.offset() + 1
                if message.offset() < end:
                    found.append(message)
        finally:
            consumer.close()
        return found

    @cached_property
    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address, **self.options})

    def _send(self, producer: Producer, value: str | bytes | None, partition: int, key: str) -> None:
        place: dict[str, Any] = {} if partition < 0 else {"partition": partition}
        producer.produce(self.name, value=value, key=key, on_delivery=self._note, **place)
        producer.poll(0)

    def _note(self, error: Any, message: Any) -> None:
        assert error is None, error
        self._sent[message.partition()] = message.offset()

    def _end(self, partition: int) -> int:
        admin = AdminClient({"bootstrap.servers": self.address, **self.options})  # not one that knew the topic before
        asked = admin.list_offsets({TopicPartition(self.name, partition): OffsetSpec.latest()})
        try:
            return max(answer.result(SECONDS).offset for answer in asked.values())
        except KafkaException:
            return -1  # the partition is so new that nobody leads it yet
