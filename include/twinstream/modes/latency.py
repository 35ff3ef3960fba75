"""From event to visible: when a record came into its topic, and when the commit that holds it could be read."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twinstream.errors import SourceUnreadable
from twinstream.sources.kafka.spans import Partition, Span, Spans, from_payload
from twinstream.transaction import Batch

SECONDS = 30.0
MOMENT = 0.1
AT_ONCE = 10_000
"""So many messages are asked for at a time, and so long is waited until there are as many."""


@dataclass(frozen=True)
class Visible:
    """Offsets that became visible together."""

    spans: Spans
    at: float
    """Seconds since 1970."""


def committed(batches: Iterable[Batch]) -> list[Visible]:
    """What the ledger says: the COMMITTED mark follows the sink's commit, so that this is rather late than early."""
    return [
        Visible(from_payload(batch.range.payload)[1], batch.committed_at / 1e6)
        for batch in batches
        if batch.committed_at is not None
    ]


def latencies(options: Mapping[str, str], visible: Sequence[Visible]) -> list[float]:
    """For every record the seconds from its timestamp in the topic until it was visible, in ascending order."""
    found = []
    for partition in sorted({partition for one in visible for partition in one.spans}):
        parts = [(one.spans[partition], one.at) for one in visible if partition in one.spans]
        span = Span(min(part.start for part, _ in parts), max(part.end for part, _ in parts))
        came = {message.offset(): message.timestamp()[1] / 1000 for message in messages(options, partition, span)}
        for part, at in parts:
            found += [at - came[n] for n in range(part.start, part.end) if n in came]
    return sorted(found)


def messages(options: Mapping[str, str], partition: Partition, span: Span) -> Iterator[Any]:
    """The committed messages of a partition from offset to offset, in order."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {
            **options,
            "group.id": f"twinstream-{uuid.uuid4().hex}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
        }
    )
    try:
        if not span.size:
            return
        consumer.assign([TopicPartition(*partition, span.start)])
        heard = time.monotonic()
        while True:
            got = consumer.consume(AT_ONCE, MOMENT)
            heard = time.monotonic() if got else heard
            if time.monotonic() - heard > SECONDS:
                raise SourceUnreadable(
                    f"Partition {partition[1]} of topic {partition[0]} gave nothing for {SECONDS:.0f} s.",
                    next_step="See whether its brokers are well, then run the command again.",
                )
            for message in got:
                error = message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    return
                if error is not None:
                    raise SourceUnreadable(
                        f"Partition {partition[1]} of topic {partition[0]} could not be read: {error.str()}.",
                        next_step="See whether its brokers are well, then run the command again.",
                    )
                if (message.offset() or 0) >= span.end:
                    return
                yield message
                if message.offset() == span.end - 1:
                    return
    finally:
        consumer.close()


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` of them lie; they are in ascending order, and there is at least one."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
