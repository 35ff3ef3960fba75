"""Comparing two tables, cheapest first: digests, then only the rows that can differ."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING

from twinstream.reconcile.differences import classify, leftovers, rows_of_both
from twinstream.reconcile.digests import BucketDigests, digest, digested
from twinstream.reconcile.fetch import MOST_TO_FETCH, fetch_differing
from twinstream.reconcile.few import classify_few
from twinstream.reconcile.hashes import BUCKETS, KEY_HASH, bucket
from twinstream.reconcile.keys import rows_of_differing_keys
from twinstream.reconcile.options import Options
from twinstream.reconcile.partitions import few_partitions
from twinstream.reconcile.result import Comparison, Difference, Side
from twinstream.reconcile.samples import draw_samples, first_of_each, to_sample
from twinstream.reconcile.shape import Shape, common_shape
from twinstream.reconcile.shown import Differing, show

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CELLS = 256
KINDS = (Difference.MISSING, Difference.PHANTOM, Difference.DUPLICATED, Difference.MISMATCHED)
MOST = BUCKETS // 2
"""Where more buckets differ they say little, and rows are sought by their keys at once."""
FEW_ROWS = 1_000_000
"""So many rows are shuffled into few partitions."""
FEW_LEFT = 2_000
"""So many differing rows are classified without further jobs."""


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
    left: DataFrame | None
    tolerances: Mapping[str, Decimal]
    sample_keys: tuple[int, ...] = ()
    """The hash of each sample's key."""

    @cached_property
    def rows(self) -> DataFrame | None:
        """`kind`, `_key_hash`, `n`, `ns`, `nb`, `stream` and `batch` (comparable rows); None if no bucket differs."""
        return None if self.left is None else classify(self.left, self.shape, self.tolerances)


def compare(
    stream: DataFrame, batch: DataFrame, key: Sequence[str], options: Options | None = None, known: Known | None = None
) -> Comparison:
    """Says whether two tables hold the same rows, and if not, which differ and how."""
    with find(stream, batch, key, options, known) as found:
        return found.comparison


def equal_comparison(stream: Side, batch: Side, seconds: float) -> Comparison:
    """The comparison of two sides that fingerprints say are equal."""
    return Comparison(stream, batch, dict.fromkeys(KINDS, 0), (), (0,) * CELLS, BUCKETS, 0, seconds)


@contextmanager
def find(
    stream: DataFrame, batch: DataFrame, key: Sequence[str], options: Options | None = None, known: Known | None = None
) -> Iterator[Found]:
    """`compare`, with the differences as rows for as long as the context is open."""
    started = time.monotonic()
    options, known = options or Options(), known or Known()
    shape = common_shape(stream.schema, batch.schema, key, options.exclude)
    options.check(shape)
    tolerances = options.tolerances(shape)
    with ThreadPoolExecutor(1) as beside:
        other = beside.submit(_side, batch, shape, options.names[1], known.batch)
        one, ours = _side(stream, shape, options.names[0], known.stream)
    side, theirs = other.result()
    buckets = ours.differing(theirs)
    with ExitStack() as stack:
        counts, heat, drawn, left = dict.fromkeys(KINDS, 0), [0] * CELLS, [], None
        if buckets:
            left = _leftovers(stream, batch, shape, buckets, (ours, theirs), tolerances, stack)
            drawn = _count(left, shape, options, counts, heat)
        samples = tuple(to_sample(differing, shape, options) for differing in drawn)
        seconds = time.monotonic() - started
        made = Comparison(one, side, counts, samples, tuple(heat), BUCKETS, len(buckets), seconds)
        yield Found(made, shape, (ours, theirs), left, tolerances, tuple(differing.key_hash for differing in drawn))


def _side(frame: DataFrame, shape: Shape, name: str, known: BucketDigests | None) -> tuple[Side, BucketDigests]:
    started = time.monotonic()
    made = known if known is not None and known.shape == digested(shape) else digest(frame, shape)
    return Side(name, made.rows, made.hexdigest, time.monotonic() - started), made


def _leftovers(
    stream: DataFrame,
    batch: DataFrame,
    shape: Shape,
    buckets: Sequence[int],
    digests: tuple[BucketDigests, BucketDigests],
    tolerances: Mapping[str, Decimal],
    stack: ExitStack,
) -> DataFrame:
    """The rows that differ, kept at hand until the stack is closed: they are read several times."""
    direct = len(buckets) > MOST
    number = sum(one.rows if direct else one.rows_in(buckets) for one in digests)
    if number <= FEW_ROWS:
        stack.enter_context(few_partitions(stream.sparkSession))
    if direct:
        candidates = rows_of_differing_keys(stream, batch, shape, (digests[0].rows, digests[1].rows), stack)
    else:
        candidates = rows_of_both(stream, batch, shape, buckets)
    if not direct and number <= MOST_TO_FETCH:
        return leftovers(fetch_differing(candidates, shape), shape, tolerances)
    left = leftovers(candidates.repartition(KEY_HASH), shape, tolerances).persist()
    stack.callback(left.unpersist)
    return left


def _count(
    left: DataFrame, shape: Shape, options: Options, counts: dict[Difference, int], heat: list[int]
) -> list[Differing]:
    """Counts what differs, and draws the samples."""
    from pyspark.sql import functions as F

    tolerances = options.tolerances(shape)
    rows = left.select(KEY_HASH, "s", "b", "ns", "nb", *show(shape)).limit(FEW_LEFT + 1).collect()
    if len(rows) <= FEW_LEFT:
        few = classify_few(rows, shape, tolerances)
        for differing in few:
            counts[differing.kind] += differing.rows
            heat[(differing.key_hash & (BUCKETS - 1)) * CELLS // BUCKETS] += differing.rows
        return first_of_each(few, options)
    classified = classify(left, shape, tolerances)
    for kind, cell, number in classified.groupBy("kind", _cell()).agg(F.sum("n")).collect():
        counts[Difference(kind)] += number
        heat[cell] += number
    return draw_samples(classified, shape, options)


def _cell() -> Column:
    from pyspark.sql import functions as F

    return F.shiftright(bucket(F.col(KEY_HASH)), (BUCKETS // CELLS).bit_length() - 1)
