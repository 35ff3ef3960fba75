"""Operators: what a pipeline computes, each in three forms (`full`, `partial`, `merge`) that must agree."""

from __future__ import annotations

from twinstream.operators.aggregate import Aggregate
from twinstream.operators.append import Append
from twinstream.operators.base import Operator
from twinstream.operators.measures import Measure, approx_distinct, avg, count, first, last, max_, min_, sum_
from twinstream.operators.windows import Fixed, duration_micros, fixed

__all__ = [
    "Aggregate",
    "Append",
    "Fixed",
    "Measure",
    "Operator",
    "approx_distinct",
    "avg",
    "count",
    "duration_micros",
    "first",
    "fixed",
    "last",
    "max_",
    "min_",
    "sum_",
]
