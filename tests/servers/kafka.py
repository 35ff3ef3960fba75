"""A real Kafka broker on free loopback ports, gone with the block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bin.lib.local.kafka import Kafka
from bin.lib.local.processes import Started, stop

JARS = Path(__file__).resolve().parents[2] / ".kafka"


@contextmanager
def kafka_broker(folder: Path, more: Mapping[str, str] | None = None) -> Iterator[Kafka]:
    """A broker that keeps its files in the folder, with settings besides its own."""
    kafka = Kafka(folder, JARS, more=more or {})
    process = kafka.start()
    started = Started.of("kafka", process)
    try:
        kafka.wait(process)
        yield kafka
    finally:
        stop(started)
