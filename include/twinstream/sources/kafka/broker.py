"""Asking a broker what there is: topics with their ids, and the offsets that can be read."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinstream.errors import SourceUnreadable
from twinstream.sources.kafka.connection import client_options, variable_of
from twinstream.sources.kafka.spans import Partition, Span

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

SECONDS = 15.0
FRESH_SECONDS = 0.5
"""Txids that are looked at one after another share one look at the broker."""


@dataclass(frozen=True)
class There:
    """What the broker has: ids of topics, and from where to where each partition can be read."""

    topics: Mapping[str, str]
    spans: Mapping[Partition, Span]


class Broker:
    """One cluster, asked by its administration interface; nothing is consumed and no group is joined."""

    def __init__(self, connection: str) -> None:
        self._connection = connection
        self._looked: dict[frozenset[str], tuple[float, There]] = {}
        self._client: AdminClient | None = None

    def names(self, pattern: str) -> list[str]:
        """Topics whose whole name matches."""
        chosen = re.compile(pattern)
        found = self._ask(lambda client: client.list_topics(timeout=SECONDS))
        return sorted(name for name in found.topics if chosen.fullmatch(name))

    def look(self, topics: Collection[str]) -> There:
        """What can be read of these topics now; transactions that are still open are not part of it."""
        wanted = frozenset(topics)
        at, found = self._looked.get(wanted, (0.0, None))
        if found is None or time.monotonic() - at > FRESH_SECONDS:
            found = self._ask(lambda client: self._look(client, sorted(wanted)))
            self._looked[wanted] = (time.monotonic(), found)
        return found

    def _look(self, client: AdminClient, topics: list[str]) -> There:
        from confluent_kafka import IsolationLevel, TopicCollection, TopicPartition
        from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

        described = client.describe_topics(TopicCollection(topics), request_timeout=SECONDS)
        ids: dict[str, str] = {}
        partitions: list[Partition] = []
        for name, future in described.items():
            found = self._topic(name, future.result)
            ids[name] = str(found.topic_id)
            partitions += [(name, partition.id) for partition in found.partitions]
        ends: list[dict[Partition, int]] = []
        for spec in (OffsetSpec.earliest(), OffsetSpec.latest()):  # type: ignore[no-untyped-call]
            asked = {TopicPartition(*partition): spec for partition in partitions}
            answers = client.list_offsets(
                asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=SECONDS
            ) if asked else {}  # fmt: skip
            ends.append({(one.topic, one.partition): future.result().offset for one, future in answers.items()})
        first, last = ends
        return There(ids, {partition: Span(first[partition], last[partition]) for partition in partitions})

    def _topic(self, name: str, described: Callable[[], Any]) -> Any:
        from confluent_kafka import KafkaError, KafkaException

        try:
            return described()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise SourceUnreadable(
                    f"There is no topic {name} on the brokers of {self._connection}.",
                    next_step="Make the topic, or correct its name in the definition.",
                ) from error
            raise

    def _ask(self, question: Callable[[AdminClient], Any]) -> Any:
        from confluent_kafka import KafkaError, KafkaException

        try:
            return question(self._open())
        except KafkaException as error:
            found = error.args[0]
            refused = (
                KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED,
                KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED,
            )  # fmt: skip
            self._client = None
            if found.code() in refused or self._refused():
                raise SourceUnreadable(
                    f"The brokers of {self._connection} refuse us: {found.str()}.",
                    next_step=f"Correct user, password or rights in {variable_of(self._connection)} "
                    "(in Airflow: in the connection of that name).",
                ) from error
            raise SourceUnreadable(
                f"The brokers of {self._connection} ({client_options(self._connection)['bootstrap.servers']}) do not "
                f"answer: {found.str()}.",
                next_step="Start them or correct the address, then run the command again.",
            ) from error

    def _refused(self) -> bool:
        """Where a login fails librdkafka only tells its log, and time runs out."""
        return any("authentication" in line.lower() for line in _Log.lines)

    def _open(self) -> AdminClient:
        from confluent_kafka.admin import AdminClient

        if self._client is None:
            _Log.lines.clear()
            options: dict[str, Any] = {
                **client_options(self._connection),
                "error_cb": _Log.note,
                "logger": _Log,
                "socket.timeout.ms": int(SECONDS * 1000),
            }
            self._client = AdminClient(options)
        return self._client


class _Log:
    """What librdkafka says by itself; kept to explain a failure, never shown: it repeats itself every second."""

    lines: list[str] = []  # noqa: RUF012

    @classmethod
    def note(cls, error: Any) -> None:
        cls.lines[:] = [*cls.lines[-20:], str(error)]

    @classmethod
    def log(cls, _level: int, form: str, *values: Any) -> None:
        cls.lines[:] = [*cls.lines[-20:], form % values if values else form]
