"""A topic's newest records once more, in topics of their own that are deleted afterwards."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from twinstream.errors import Refused, SourceUnreadable
from twinstream.modes.latency import messages
from twinstream.sources.base import Places
from twinstream.sources.kafka.connection import client_options
from twinstream.sources.kafka.source import KafkaSource
from twinstream.sources.kafka.spans import total

SECONDS = 30.0
SLICE = 0.02
"""Records are sent in slices of so many seconds."""


@dataclass(frozen=True)
class Sent:
    """A record as it was: its topic, all parts, and when it came."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, str | bytes | None]]
    millis: int


@dataclass(frozen=True)
class Recorded:
    """The newest records of a source in the order in which they came."""

    options: Mapping[str, str]
    partitions: Mapping[str, int]
    records: Sequence[Sent]

    @classmethod
    def of(cls, source: KafkaSource, places: Places, most: int) -> Recorded:
        """At most so many; refused where there are none."""
        options = client_options(source.connection, places.connections)
        spans = source.newest(places, most)
        found = [
            Sent(topic, number, one.key(), one.value(), list(one.headers() or []), one.timestamp()[1])
            for (topic, number), span in (spans.items() if total(spans) else ())
            for one in messages(options, (topic, number), span)
        ]
        if not found:
            raise Refused(
                "The topics hold no records, so there is nothing to compare modes with.",
                next_step="Run it again when records have come, or `twinstream generate` some.",
            )
        partitions = {topic: 1 + max(n for name, n in spans if name == topic) for topic, _ in spans}
        return cls(options, partitions, sorted(found, key=lambda one: one.millis))

    @contextmanager
    def topics(self) -> Iterator[dict[str, str]]:
        """Empty topics like those of the records; gone at the end."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

        admin = AdminClient(dict(self.options))
        names = {topic: f"twinstream-modes-{secrets.token_hex(6)}" for topic in self.partitions}
        wanted = [
            NewTopic(name, self.partitions[topic], config={"retention.ms": "-1"}) for topic, name in names.items()
        ]
        try:
            for answer in admin.create_topics(wanted).values():
                answer.result(SECONDS)
        except KafkaException as error:
            raise SourceUnreadable(
                f"A topic to replay records in could not be made: {error.args[0].str()}.",
                next_step="Let the connection's user make and delete topics named twinstream-modes-*.",
            ) from error
        try:
            yield names
        finally:
            for answer in admin.delete_topics(list(names.values())).values():
                answer.result(SECONDS)

    def send(self, topics: Mapping[str, str], seconds: float | None) -> None:
        """Sends them to the partitions they had: at once with their own times, or over so many seconds, as of now.

        Over a time they keep the distances that they had, drawn out or pressed together.
        """
        from confluent_kafka import Producer

        lost: list[str] = []

        def heard(error: Any, _message: Any) -> None:
            if error is not None:
                lost.append(str(error))

        producer = Producer({**self.options, "linger.ms": 5})
        began = time.monotonic()
        for one, due in zip(self.records, self._due(seconds or 0.0), strict=True):
            if seconds is not None and (early := began + due - time.monotonic()) > SLICE:
                time.sleep(early)
            when: dict[str, Any] = {} if seconds is not None else {"timestamp": one.millis}
            while True:
                try:
                    producer.produce(
                        topics[one.topic], value=one.value, key=one.key, partition=one.partition,
                        headers=one.headers, on_delivery=heard, **when,
                    )  # fmt: skip
                    break
                except BufferError:
                    producer.poll(0.05)
            producer.poll(0)
        left = producer.flush(SECONDS)
        if left or lost:
            raise SourceUnreadable(
                f"Records could not be replayed: {lost[0] if lost else f'{left} were not taken in time'}.",
                next_step="See whether the brokers are well, then run the command again.",
            )

    def _due(self, seconds: float) -> Iterator[float]:
        first, last = self.records[0].millis, self.records[-1].millis
        for number, one in enumerate(self.records):
            share = (one.millis - first) / (last - first) if last > first else number / len(self.records)
            yield share * seconds
