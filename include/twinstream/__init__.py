"""Twinstream: declare a pipeline once, stream it exactly once, and be able to prove the result."""

from __future__ import annotations

from twinstream.deduplicate import Deduplicate
from twinstream.operators import Aggregate, Append, approx_distinct, avg, count, first, fixed, last, max_, min_, sum_
from twinstream.orchestration import Orchestration
from twinstream.pipeline import Checks, Pipeline
from twinstream.prepare import batch_time
from twinstream.sinks.delta import DeltaSink
from twinstream.sinks.kafka import KafkaSink
from twinstream.sources.files import FileSource
from twinstream.sources.kafka import KafkaSource
from twinstream.watermark import Watermark

__version__ = "0.1.0"

__all__ = [
    "Aggregate",
    "Append",
    "Checks",
    "Deduplicate",
    "DeltaSink",
    "FileSource",
    "KafkaSink",
    "KafkaSource",
    "Orchestration",
    "Pipeline",
    "Watermark",
    "approx_distinct",
    "avg",
    "batch_time",
    "count",
    "first",
    "fixed",
    "last",
    "max_",
    "min_",
    "sum_",
]
