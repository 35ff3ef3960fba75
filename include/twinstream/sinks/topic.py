"""Sending rows to a topic in order, so that all of them are there, or one clear error says why not."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twinstream.errors import SinkUnwritable, SourceUnreadable
from twinstream.sources.kafka.broker import Broker
from twinstream.sources.kafka.connection import client_options, keeper, variable_of

if TYPE_CHECKING:
    from confluent_kafka import Producer

SECONDS = 30.0
"""How long a broker may take to confirm a row."""
_LARGEST = 1_000_000_000
"""Whether a row is too large is the topic's to say."""


class TopicSender:
    """One connection to a topic; the broker keeps the order and drops what the client itself sends again."""

    def __init__(self, topic: str, connection: str, known: Mapping[str, str]) -> None:
        self._topic = topic
        self._connection = connection
        self._options = client_options(connection, known)
        self._producer: Producer | None = None
        self._lost: Any = None
        self._said: deque[str] = deque(maxlen=20)

    def require(self) -> None:
        """Raises SinkUnwritable unless the brokers answer and have the topic."""
        try:
            Broker(self._connection, self._options).look([self._topic])
        except SourceUnreadable as error:
            raise unwritable(error.what, error.next_step) from error

    def send(self, key: str | None, value: str, headers: Sequence[tuple[str, str]]) -> None:
        """Hands a row to the client; that it has arrived is known after `flush`."""
        from confluent_kafka import KafkaException

        producer = self._open()
        pairs: list[tuple[str, str | bytes | None]] = [(name, text.encode()) for name, text in headers]
        while True:
            try:
                producer.produce(self._topic, value=value, key=key, headers=pairs, on_delivery=self._heard)
                break
            except BufferError:
                producer.poll(0.1)
            except KafkaException as error:
                raise self._refused(error.args[0]) from error
        producer.poll(0)
        self._check()

    def flush(self) -> None:
        """Returns when every row that was sent is in the topic."""
        if self._producer is not None:
            left = self._producer.flush(2 * SECONDS)
            self._check()
            if left:
                raise unwritable(f"The topic {self._topic} did not take {left} rows in time.", "Look at its brokers.")

    def close(self) -> None:
        """Forgets what was not sent: it is sent again by whoever goes on."""
        if self._producer is not None:
            self._producer.purge()
            self._producer.flush(1.0)
            self._producer = None

    def _heard(self, error: Any, _message: Any) -> None:
        if error is not None and self._lost is None:
            self._lost = error

    def _check(self) -> None:
        if self._lost is not None:
            raise self._refused(self._lost)

    def _refused(self, error: Any) -> SinkUnwritable:
        from confluent_kafka import KafkaError

        if error.code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED):
            return unwritable(
                f"The brokers of {self._connection} do not let us write to the topic {self._topic}: {error.str()}.",
                f"Give the user of {variable_of(self._connection)} the right to write to it.",
            )
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return unwritable(
                f"A row is larger than the topic {self._topic} takes.", "Raise max.message.bytes of the topic."
            )
        return unwritable(f"The topic {self._topic} could not be written: {error.str()}.", "Look at its brokers.")

    def _open(self) -> Producer:
        from confluent_kafka import Producer

        if self._producer is None:
            options: dict[str, Any] = {
                **self._options, "logger": keeper(self._said), "enable.idempotence": True, "linger.ms": 20,
                "compression.type": "lz4", "message.max.bytes": _LARGEST, "message.timeout.ms": int(SECONDS * 1000),
            }  # fmt: skip
            self._producer = Producer(options)
        return self._producer


def unwritable(what: str, next_step: str) -> SinkUnwritable:
    """The error for rows that are committed but cannot be sent."""
    return SinkUnwritable(
        what,
        untouched="What is committed stays committed, and is produced when the topic can be written again.",
        next_step=f"{next_step} Then run the command again: it goes on where this one stopped.",
    )
