"""Measures: what an Aggregate computes per group, each with one exact meaning by both roads."""

from __future__ import annotations

from twinstream.operators.measures.base import Measure
from twinstream.operators.measures.counts import CountRows, CountValues
from twinstream.operators.measures.distinct import ApproxDistinct
from twinstream.operators.measures.extremes import Max, Min
from twinstream.operators.measures.mean import Avg
from twinstream.operators.measures.ordered import First, Last
from twinstream.operators.measures.sums import Sum

__all__ = ["Measure", "approx_distinct", "avg", "count", "first", "last", "max_", "min_", "sum_"]


def count(column: str | None = None) -> Measure:
    """Rows, or the rows where `column` is not null (bigint, 0 for none)."""
    return CountRows() if column is None else CountValues(column)


def sum_(column: str) -> Measure:
    """Exact sum of an integer or decimal column (decimal(38,s), null for no values)."""
    return Sum(column)


def min_(column: str) -> Measure:
    """Smallest value that is not null, in the column's own type."""
    return Min(column)


def max_(column: str) -> Measure:
    """Largest value that is not null, in the column's own type; NaN is above all numbers."""
    return Max(column)


def avg(column: str) -> Measure:
    """Exact average of an integer or decimal column, rounded half up (decimal(38,s+4), null for no values)."""
    return Avg(column)


def approx_distinct(column: str) -> Measure:
    """About how many different values there are; exact up to 4096 (bigint, 0 for none)."""
    return ApproxDistinct(column)


def first(column: str) -> Measure:
    """The earliest value that is not null, by event time, then record id, then the value's hash."""
    return First(column)


def last(column: str) -> Measure:
    """The latest value that is not null, by event time, then record id, then the value's hash."""
    return Last(column)
