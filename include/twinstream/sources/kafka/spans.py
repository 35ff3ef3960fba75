"""Offsets as plain numbers: what a txid holds of each partition, and how what is new is cut into txids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Partition = tuple[str, int]
"""Topic and number."""


@dataclass(frozen=True)
class Span:
    """Offsets of one partition, the end not included."""

    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


Spans = Mapping[Partition, Span]


def cut(new: Spans, pieces: int) -> Iterator[dict[Partition, Span]]:
    """The spans in consecutive pieces of about the same size, each with its share of every partition."""
    for piece in range(pieces):
        yield {
            partition: Span(span.start + span.size * piece // pieces, span.start + span.size * (piece + 1) // pieces)
            for partition, span in new.items()
        }


def total(spans: Spans) -> int:
    """How many offsets."""
    return sum(span.size for span in spans.values())


def to_payload(topics: Mapping[str, str], spans: Spans) -> dict[str, Any]:
    """As a range keeps it: by topic, its id, and start and end for each partition that is known, also empty ones."""
    found: dict[str, Any] = {topic: {"id": topics[topic], "partitions": {}} for topic in sorted(topics)}
    for (topic, number), span in sorted(spans.items()):
        found[topic]["partitions"][str(number)] = [span.start, span.end]
    return {"place": "topics", "topics": found}


def from_payload(payload: Mapping[str, Any]) -> tuple[dict[str, str], dict[Partition, Span]]:
    """Ids of topics, and spans."""
    topics = payload["topics"]
    ids = {topic: str(found["id"]) for topic, found in topics.items()}
    spans = {
        (topic, int(number)): Span(*span)
        for topic, found in topics.items()
        for number, span in found["partitions"].items()
    }
    return ids, spans
