"""A scratch home whose page_views come from a topic; the truth reads the same offsets by a plain consumer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.home import Home, _iso
from tests.kafka.topic import Topic
from twinstream.settings import Settings

FILES = """FileSource(
        "data/page_views",
        format="json",
        schema="event_id string, page string, amount decimal(12,2), at timestamp",
    )"""
TOPIC = """KafkaSource(
        topics={topic!r},
        schema="event_id string, page string, amount decimal(12,2), at timestamp",
    )"""


@dataclass
class KafkaHome(Home):
    """Like the other homes, with a topic in place of a folder."""

    topic: Topic
    connection: str = ""

    @classmethod
    def on(cls, folder: Path, spark: Any, topic: Topic) -> KafkaHome:
        plain = Home.make(folder, spark)
        home = cls(plain.folder, spark, plain.pipelines, topic, topic.address)
        home.change("page_views", FILES, TOPIC.format(topic=topic.name))
        home.change("page_views", "FileSource, ", "KafkaSource, ")
        return home

    @property
    def settings(self) -> Settings:
        return Settings.from_env(
            {
                "TWINSTREAM_HOME": str(self.folder),
                "TWINSTREAM_PIPELINES": str(self.pipelines),
                "TWINSTREAM_KAFKA_DEFAULT": self.connection,
            }
        )

    def ranges(self, name: str) -> list[dict[str, Any]]:
        engine = self.engine()
        generation = engine.generation(engine.definition(name))
        found = []
        for batch in engine.ledger.batches.get(generation.id, 1, generation.frontier):
            file = self.folder / "consumed" / f"{batch.txid}.json"
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(b"".join(_line(one) for one in self._consumed(batch.range.payload)))
            found.append(
                {
                    "txid": batch.txid,
                    "files": [str(file)],
                    "batch_time": _iso(batch.batch_time),
                    "discarded": batch.discard_reason is not None,
                    "exempt": batch.exempt,
                }
            )
        return found

    def _consumed(self, payload: Any) -> list[Any]:
        if payload["place"] == "reinjected":
            folder = self.settings.places("page_views").reinjected
            return [line for file in payload["files"] for line in (folder / file["path"]).read_bytes().splitlines()]
        return [
            message.value()
            for topic, known in payload["topics"].items()
            for partition, (start, end) in known["partitions"].items()
            for message in Topic(self.topic.address, topic, self.topic.options).read(int(partition), start, end)
        ]


def _line(value: bytes | None) -> bytes:
    """A record as a line of its own; to JSON a line break is no more than a space, and nothing at all is no record."""
    return (value or b"").replace(b"\n", b" ").strip() + b"\n" if (value or b"").strip() else b"not a record\n"


def event(number: int, page: str = "/a", at: str = "2026-03-01T10:00:00Z", amount: str = "1.50") -> str:
    return json.dumps({"event_id": f"e{number}", "page": page, "amount": amount, "at": at})
