"""Rows of few buckets are brought here at once: one job, and what is left of them is as small as the differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinstream.reconcile.canonical import is_nested
from twinstream.reconcile.hashes import KEY_HASH, ROW_HASHES, cells, row_hashes
from twinstream.reconcile.shape import Shape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_TO_FETCH = 50_000
"""Rows of both sides; more of them are compared where they are."""


def fetch_differing(rows: DataFrame, shape: Shape) -> DataFrame:
    """Of rows of both sides those whose key differs in any row, as a table at hand, in one partition.

    Arrow tells rows apart by their values, which for nested ones it cannot; there Spark's hashes do. A row too many (of
    0.0 and -0.0, say) does no harm here.
    """
    import pyarrow.compute as pc

    values = list(cells(shape).values())
    nested = any(is_nested(type_) for type_ in shape.columns.values())
    same = list(ROW_HASHES) if nested else values
    fetched = (rows.select("*", *row_hashes(shape)) if nested else rows).toArrow()
    counts = fetched.group_by([KEY_HASH, *same]).aggregate([("s", "sum"), ("b", "sum")])
    differing = counts.filter(pc.not_equal(counts["s_sum"], counts["b_sum"]))[KEY_HASH]
    kept = fetched.filter(pc.is_in(fetched[KEY_HASH], value_set=differing)).select(rows.columns)
    return rows.sparkSession.createDataFrame(kept, schema=rows.schema).coalesce(1)
