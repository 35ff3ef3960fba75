"""A topic as the generator writes it: a record a message, the parts that a source takes from key or headers apart."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from twinstream.errors import SourceUnreadable
from twinstream.sources.kafka.connection import keeper

PARTITIONS = 3
SECONDS = 30.0


class TopicWriter:
    """Sends records to a topic, which is made if it is not there."""

    def __init__(self, topic: str, options: Mapping[str, str], fields: Mapping[str, str]) -> None:
        self._topic = topic
        self._options = dict(options)
        self._fields = {name: what for name, what in fields.items() if what == "key" or what.startswith("header:")}
        self._others = set(fields) - set(self._fields)
        self._lost: str | None = None
        self.bytes = 0

    def __str__(self) -> str:
        return f"the topic {self._topic}"

    def __enter__(self) -> Self:
        from confluent_kafka import KafkaException, Producer
        from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

        quiet: dict[str, Any] = {**self._options, "logger": keeper(deque(maxlen=1))}
        admin = AdminClient(quiet)
        try:
            if self._topic not in admin.list_topics(timeout=SECONDS).topics:
                admin.create_topics([NewTopic(self._topic, PARTITIONS)])[self._topic].result(SECONDS)
        except KafkaException as error:
            raise self._unwritable(error.args[0].str()) from error
        self._producer = Producer({**quiet, "linger.ms": 50, "compression.type": "lz4"})
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        left = self._producer.flush(SECONDS)
        if kind is None and (left or self._lost):
            raise self._unwritable(self._lost or f"{left} records were not taken in time")

    def write(self, records: Sequence[object]) -> None:
        for record in records:
            value, parts = self._taken_apart(str(record)) if self._fields or self._others else (str(record), {})
            self.bytes += len(value)
            while True:
                try:
                    self._producer.produce(self._topic, value=value, on_delivery=self._heard, **parts)
                    break
                except BufferError:
                    self._producer.poll(0.1)
            self._producer.poll(0)
        if self._lost:
            raise self._unwritable(self._lost)

    def _taken_apart(self, record: str) -> tuple[str, dict[str, Any]]:
        """The value and the rest of a message; a record that is broken is sent as it is."""
        try:
            found = json.loads(record)
        except ValueError:
            return record, {}
        if not isinstance(found, dict):
            return record, {}
        parts: dict[str, Any] = {}
        for name, what in self._fields.items():
            if (value := found.pop(name, None)) is None:
                continue
            if what == "key":
                parts["key"] = str(value)
            else:
                parts.setdefault("headers", []).append((what.partition(":")[2], str(value)))
        for name in self._others:
            found.pop(name, None)
        return json.dumps(found, ensure_ascii=False), parts

    def _heard(self, error: Any, _message: Any) -> None:
        if error is not None:
            self._lost = str(error)

    def _unwritable(self, why: str) -> SourceUnreadable:
        return SourceUnreadable(
            f"The topic {self._topic} could not be written: {why}.",
            untouched="What was sent before stays.",
            next_step="Mend that, then generate with another seed.",
        )
