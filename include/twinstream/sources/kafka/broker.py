"""Asking a broker what there is: topics with their ids, and the offsets that can be read."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinstream.errors import SourceUnreadable
from twinstream.sources.kafka.connection import keeper, variable_of
from twinstream.sources.kafka.spans import Partition, Span

if TYPE_CHECKING:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

SECONDS = 15.0


@dataclass(frozen=True)
class There:
    """What the broker has: ids of topics, and from where to where each partition can be read."""

    topics: Mapping[str, str]
    spans: Mapping[Partition, Span]


class Broker:
    """One cluster, asked by its administration interface; nothing is consumed and no group is joined."""

    def __init__(self, connection: str, options: Mapping[str, str]) -> None:
        self._connection = connection
        self._options = dict(options)
        self._said: deque[str] = deque(maxlen=20)
        self._client: AdminClient | None = None

    def names(self, pattern: str) -> list[str]:
        """Topics whose whole name matches."""
        chosen = re.compile(pattern)
        found = self._ask(lambda client: client.list_topics(timeout=SECONDS))
        return sorted(name for name in found.topics if chosen.fullmatch(name))

    def look(self, topics: Collection[str]) -> There:
        """What can be read of these topics now; transactions that are still open are no part of it."""
        found: There = self._ask(lambda client: self._look(client, sorted(set(topics))))
        return found

    def _look(self, client: AdminClient, topics: list[str]) -> There:
        from confluent_kafka import IsolationLevel, TopicPartition
        from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

        ids, partitions = self._describe(client, topics)
        ends: list[dict[Partition, int]] = []
        for spec in (OffsetSpec.earliest(), OffsetSpec.latest()):  # type: ignore[no-untyped-call]
            asked = {TopicPartition(*partition): spec for partition in partitions}
            answers = client.list_offsets(
                asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=SECONDS
            ) if asked else {}  # fmt: skip
            ends.append({(one.topic, one.partition): future.result().offset for one, future in answers.items()})
        first, last = ends
        if self._describe(client, topics)[0] != ids:  # made anew between the questions: the offsets are another topic's
            return self._look(client, topics)
        return There(ids, {partition: Span(first[partition], last[partition]) for partition in partitions})

    def _describe(self, client: AdminClient, topics: list[str]) -> tuple[dict[str, str], list[Partition]]:
        from confluent_kafka import TopicCollection

        ids: dict[str, str] = {}
        partitions: list[Partition] = []
        for name, future in client.describe_topics(TopicCollection(topics), request_timeout=SECONDS).items():
            found = self._topic(name, future.result)
            ids[name] = str(found.topic_id)
            partitions += [(name, partition.id) for partition in found.partitions]
        return ids, partitions

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

        moving = (KafkaError._NOENT, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION)
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                return question(self._open())
            except KafkaException as error:
                if error.args[0].code() not in moving or time.monotonic() > deadline:
                    raise self._explained(error) from error
                self._client = None  # what it knows about leaders it would go on to know for minutes
                time.sleep(0.1)

    def _explained(self, error: KafkaException) -> SourceUnreadable:
        from confluent_kafka import KafkaError

        found = error.args[0]
        refused = (
            KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED,
            KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        )  # fmt: skip
        if found.code() in refused or self._refused():
            return SourceUnreadable(
                f"The brokers of {self._connection} refuse us: {found.str()}.",
                next_step=f"Correct user, password or rights in {variable_of(self._connection)} "
                "(in Airflow: in the connection of that name).",
            )
        return SourceUnreadable(
            f"The brokers of {self._connection} ({self._options['bootstrap.servers']}) do not answer: {found.str()}.",
            next_step="Start them or correct the address, then run the command again.",
        )

    def _refused(self) -> bool:
        """Where a login fails librdkafka only tells its log, and time runs out. The next question gets a new client."""
        if self._client is not None:
            self._client.poll(0.1)
            self._client = None
        return any("authentication" in line.lower() for line in self._said)

    def _open(self) -> AdminClient:
        from confluent_kafka.admin import AdminClient

        if self._client is None:
            self._said.clear()
            timeout = int(SECONDS * 1000)
            options: dict[str, Any] = {**self._options, "logger": keeper(self._said), "socket.timeout.ms": timeout}
            self._client = AdminClient(options)
        return self._client
