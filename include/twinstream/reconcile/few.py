"""Few differing rows are classified here instead of by further Spark jobs: the usual case, and the quick one.

The same rules as `differences.classify`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import groupby
from typing import TYPE_CHECKING

from twinstream.reconcile.hashes import KEY_HASH, cells
from twinstream.reconcile.result import Difference
from twinstream.reconcile.shape import Shape
from twinstream.reconcile.shown import Differing, Shown, cells_of, close

if TYPE_CHECKING:
    from pyspark.sql import Row


def classify_few(rows: Sequence[Row], shape: Shape, tolerances: Mapping[str, Decimal]) -> list[Differing]:
    """What differs, of leftovers in their order."""
    places = cells(shape)
    key = [places[name] for name in shape.key]
    found: list[Differing] = []
    for _, group in groupby(rows, key=lambda row: (row[KEY_HASH], *(row[place]["hash"] for place in key))):
        found += _of_key(list(group), shape, tolerances)
    return found


def _of_key(rows: Sequence[Row], shape: Shape, tolerances: Mapping[str, Decimal]) -> Iterable[Differing]:
    first = rows[0]
    sides = [
        [[row["s"] - row["b"], row] for row in rows if row["s"] > row["b"]],
        [[row["b"] - row["s"], row] for row in rows if row["b"] > row["s"]],
    ]
    counts = (first["ns"], first["nb"])
    while sides[0] and sides[1]:
        (ours, stream), (theirs, batch) = sides[0][0], sides[1][0]
        pairs = min(ours, theirs)
        pair = (cells_of(stream, shape), cells_of(batch, shape))
        if not _all_close(pair, shape, tolerances):
            yield Differing(Difference.MISMATCHED, first[KEY_HASH], pairs, *counts, *pair)
        for side in sides:
            side[0][0] -= pairs
            if side[0][0] == 0:
                side.pop(0)
    extra = Difference.DUPLICATED if first["nb"] else Difference.PHANTOM
    for count, row in sides[0]:
        yield Differing(extra, first[KEY_HASH], count, *counts, cells_of(row, shape), None)
    for count, row in sides[1]:
        yield Differing(Difference.MISSING, first[KEY_HASH], count, *counts, None, cells_of(row, shape))


def _all_close(
    pair: tuple[Mapping[str, Shown], Mapping[str, Shown]], shape: Shape, tolerances: Mapping[str, Decimal]
) -> bool:
    return all(close(pair[0][name], pair[1][name], shape.columns[name], tolerances.get(name)) for name in shape.names)
