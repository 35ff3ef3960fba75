"""A result that is not folded yet, compared without merging it: by its linear fingerprint, where that says everything.

Merging shuffles every row of the result, only to find in the usual case that all is well. Base and partials have the
fingerprint of the merged rows; the batch result's was kept when it was made, and its table is still what it was if its
digest is. What a fingerprint cannot tell apart (docs/digests.md) is counted on the way; where it might matter, and
where anything differs, rows are looked at.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from twinstream.operators.base import Operator
from twinstream.reconcile.compare import equal_comparison
from twinstream.reconcile.digests import BucketDigests, digest
from twinstream.reconcile.linear import LinearFingerprint, linear_fingerprint, linear_measures
from twinstream.reconcile.prints import load_prints
from twinstream.reconcile.result import Comparison, Side
from twinstream.reconcile.shape import shape_of
from twinstream.reconcile.sides import Sides

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def equal_without_merging(sides: Sides) -> Comparison | None:
    """That both sides are equal, if fingerprints can say so; None where rows have to be looked at."""
    if not _is_enough(sides):
        return None
    assert sides.run.folder is not None
    kept = load_prints(sides.home / sides.run.folder)
    if kept is None or kept.linear is None:
        return None
    return compare_unmerged(sides.unmerged(), sides.batch(), sides.operator, sides.key, kept.digests, kept.linear)


def compare_unmerged(
    states: Sequence[DataFrame],
    batch: DataFrame,
    operator: Operator,
    key: Sequence[str],
    kept: BucketDigests,
    expected: LinearFingerprint,
) -> Comparison | None:
    """That states, were they merged, would be the batch result of these fingerprints; None where rows have to tell."""
    started = time.monotonic()
    with ThreadPoolExecutor(1) as beside:
        table = beside.submit(digest, batch, shape_of(batch.schema, key))
        streamed = reduce(add, (linear_fingerprint(some, operator) for some in states))
        found = table.result()
    same = found.hexdigest == kept.hexdigest and streamed.hexdigest == expected.hexdigest
    if not same or streamed.unclear or expected.unclear:
        return None
    seconds = time.monotonic() - started
    rows, mark = found.rows, found.hexdigest
    return equal_comparison(Side("stream", rows, mark, seconds), Side("batch", rows, mark, seconds), seconds)


def _is_enough(sides: Sides) -> bool:
    """Whether there is something to merge, and nothing is asked that only merged rows can answer."""
    checks = sides.definition.pipeline.checks
    asks_rows = bool(checks.tolerance or checks.exclude or checks.non_negative or sides.scope)
    return bool(sides.view.partial_files and linear_measures(sides.operator)) and not asks_rows
