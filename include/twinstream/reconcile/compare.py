"""Comparing two tables, cheapest first: digests, then only the rows that can differ."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinstream.reconcile.differences import classify, differing_keys, leftovers, rows_of_buckets, rows_of_keys
from twinstream.reconcile.digests import BucketDigests, digest
from twinstream.reconcile.hashes import BUCKETS, KEY_HASH, bucket
from twinstream.reconcile.options import Options
from twinstream.reconcile.partitions import few_partitions
from twinstream.reconcile.result import Comparison, Difference, Side
from twinstream.reconcile.samples import draw_samples
from twinstream.reconcile.shape import Shape, common_shape

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CELLS = 256
KINDS = (Difference.MISSING, Difference.PHANTOM, Difference.DUPLICATED, Difference.MISMATCHED)
FEW_ROWS = 1_000_000
MOST = BUCKETS // 2
"""From so many differing buckets on rows are sought by their keys, for the buckets say little any more."""


@dataclass(frozen=True)
class Known:
    """Digests of either side that were computed earlier; they are used if they are of the same shape."""

    stream: BucketDigests | None = None
    batch: BucketDigests | None = None


@dataclass(frozen=True)
class Found:
    """A comparison, with what others go on from: the digests, and the differences as rows while `find` is open."""

    comparison: Comparison
    shape: Shape
    digests: tuple[BucketDigests, BucketDigests]
    rows: DataFrame | None = None
    """`kind`, `_key_hash`, `n`, `ns`, `nb`, `stream` and `batch` (comparable rows); None if none differ."""
    sample_keys: tuple[int, ...] = ()
    """The hash of each sample's key."""


def compare(
    stream: DataFrame, batch: DataFrame, key: Sequence[str], options: Options | None = None, known: Known | None = None
) -> Comparison:
    """Says whether two tables hold the same rows, and if not, which differ and how."""
    with find(stream, batch, key, options, known) as found:
        return found.comparison


@contextmanager
def find(
    stream: DataFrame, batch: DataFrame, key: Sequence[str], options: Options | None = None, known: Known | None = None
) -> Iterator[Found]:
    """`compare`, with the differences as rows for as long as the context is open."""
    from pyspark.sql import functions as F

    started = time.monotonic()
    options, known = options or Options(), known or Known()
    shape = common_shape(stream.schema, batch.schema, key, options.exclude)
    options.check(shape)
    one, ours = _side(stream, shape, options.names[0], known.stream)
    other, theirs = _side(batch, shape, options.names[1], known.batch)
    buckets = ours.differing(theirs)
    with ExitStack() as stack:
        counts, heat, drawn, rows = dict.fromkeys(KINDS, 0), [0] * CELLS, [], None
        if buckets:
            left = _leftovers(stream, batch, shape, buckets, ours.rows + theirs.rows, stack)
            rows = classify(left, shape, options.tolerances(shape))
            for row in rows.groupBy("kind", _cell()).agg(F.sum("n")).collect():
                counts[Difference(row[0])] += row[2]
                heat[row[1]] += row[2]
            drawn = draw_samples(rows, shape, options)
        samples = tuple(sample for _, sample in drawn)
        seconds = time.monotonic() - started
        made = Comparison(one, other, counts, samples, tuple(heat), BUCKETS, len(buckets), seconds)
        yield Found(made, shape, (ours, theirs), rows, tuple(key_hash for key_hash, _ in drawn))


def _side(frame: DataFrame, shape: Shape, name: str, known: BucketDigests | None) -> tuple[Side, BucketDigests]:
    started = time.monotonic()
    made = known if known is not None and known.shape == shape.text else digest(frame, shape)
    return Side(name, made.rows, made.hexdigest, time.monotonic() - started), made


def _leftovers(
    stream: DataFrame, batch: DataFrame, shape: Shape, buckets: Sequence[int], rows: int, stack: ExitStack
) -> DataFrame:
    """The rows that differ, kept at hand until the stack is closed: they are read several times."""
    if len(buckets) <= MOST:
        candidates = rows_of_buckets(stream, batch, shape, buckets)
        rows = rows * len(buckets) // BUCKETS
    else:
        keys = differing_keys(stream, batch, shape).persist()
        stack.callback(keys.unpersist)
        rows = keys.count()
        candidates = rows_of_keys(stream, batch, shape, keys, rows)
    if rows <= FEW_ROWS:
        stack.enter_context(few_partitions(stream.sparkSession))
    left = leftovers(candidates, shape).persist()
    stack.callback(left.unpersist)
    return left


def _cell() -> Column:
    from pyspark.sql import functions as F

    return F.shiftright(bucket(F.col(KEY_HASH)), (BUCKETS // CELLS).bit_length() - 1)
