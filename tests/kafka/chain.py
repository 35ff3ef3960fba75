"""Pipelines from topic to topic, and what a plain consumer finds in both."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kafka.home import KafkaHome
from tests.kafka.topic import Topic

NAME = "clicks"
DEFINITION = """
from twinstream import Append, KafkaSink, KafkaSource, Pipeline, Watermark

pipeline = Pipeline(
    name="clicks",
    source=KafkaSource(
        topics={source!r},
        schema="event_id string, page string, amount decimal(12,2), at timestamp",
    ),
    record_id="event_id",
    event_time="at",
    prepare="select event_id, page, amount, at from events where page <> '/b'",
    operator=Append(),
    watermark=Watermark(delay="10 minutes", late="keep"),
    sink=KafkaSink({sink!r}),
    delivery="at-least-once",
    batch_records=20,
)
"""


@dataclass(frozen=True)
class Sent:
    """One record of the topic that a pipeline writes."""

    key: str | None
    value: Mapping[str, Any]
    headers: Mapping[str, str]

    @property
    def place(self) -> tuple[str, int, int]:
        """Generation, txid and sequence."""
        return (
            self.headers["twinstream-generation"],
            int(self.headers["twinstream-txid"]),
            int(self.headers["twinstream-sequence"]),
        )


@dataclass
class Chain:
    """A home with the pipeline clicks from one topic to another."""

    home: KafkaHome
    source: Topic
    sink: Topic

    @classmethod
    def make(cls, folder: Path, spark: Any, source: Topic, sink: Topic) -> Chain:
        home = KafkaHome.on(folder, spark, source)
        (home.pipelines / f"{NAME}.py").write_text(DEFINITION.format(source=source.name, sink=sink.name))
        return cls(home, source, sink)

    def drain(self, **options: Any) -> Any:
        return self.home.drain(NAME, **options)

    def sent(self) -> list[Sent]:
        """What is in the sink's topic, partition by partition."""
        return [
            Sent(
                message.key() and message.key().decode(),
                json.loads(message.value()),
                {name: value.decode() for name, value in message.headers()},
            )
            for message in whole(self.sink)
        ]

    def expected(self) -> Counter[str]:
        """What should be there, by a plain reading of the source's topic."""
        found: Counter[str] = Counter()
        for message in whole(self.source):
            try:
                value = json.loads(message.value())
            except ValueError:
                continue
            if value["page"] != "/b":
                found[as_text(value)] += 1
        return found


def whole(topic: Topic) -> list[Any]:
    """All records of a topic."""
    partitions = topic._admin.list_topics(topic.name, timeout=30).topics[topic.name].partitions
    return [message for number in sorted(partitions) for message in topic.read(number, 0, topic._end(number))]


def as_text(value: Mapping[str, Any]) -> str:
    """A row in one form, whoever wrote it: amounts as numbers, moments without what is zero."""
    at = value["at"].replace(".000000Z", "Z")
    return json.dumps({**value, "amount": f"{float(value['amount']):.2f}", "at": at}, sort_keys=True)


def rows(sent: list[Sent]) -> Counter[str]:
    return Counter(as_text(one.value) for one in sent)
