"""Kafka as a source: partitions with offset ranges."""

from __future__ import annotations

from twinstream.sources.kafka.source import KafkaSource

__all__ = ["KafkaSource"]
