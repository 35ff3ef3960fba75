"""Differing rows as people read them: the differing cells marked, sensitive columns masked."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from twinstream.reconcile.hashes import KEY_HASH
from twinstream.reconcile.options import Options
from twinstream.reconcile.result import Cell, Difference, Sample
from twinstream.reconcile.shape import Shape
from twinstream.reconcile.shown import Differing, Shown, cells_of, close, minus, show

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

MASK = "•••"


def draw_samples(classified: DataFrame, shape: Shape, options: Options) -> list[Differing]:
    """The first rows of each kind by the hash of their key, so that the choice is random and always the same."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    if options.samples == 0:
        return []
    order = Window.partitionBy("kind").orderBy(KEY_HASH, "stream", "batch")
    chosen = classified.withColumn("place", F.row_number().over(order)).where(F.col("place") <= options.samples)
    sides = [
        F.when(F.col(side).isNotNull(), F.struct(*show(shape, side))).alias(f"{side}_row")
        for side in ("stream", "batch")
    ]
    found = chosen.select("kind", KEY_HASH, "n", "ns", "nb", *sides).collect()
    drawn = []
    for kind, key_hash, rows, stream_rows, batch_rows, *row in found:
        stream, batch = (None if side is None else cells_of(side, shape) for side in row)
        drawn.append(Differing(Difference(kind), key_hash, rows, stream_rows, batch_rows, stream, batch))
    return first_of_each(drawn, options)


def first_of_each(found: list[Differing], options: Options) -> list[Differing]:
    """At most so many of each kind as the options say, the kinds in their order, then by the hash of the key."""
    kinds = list(Difference)
    found = sorted(found, key=lambda one: (kinds.index(one.kind), one.key_hash))
    return [one for kind in kinds for one in [one for one in found if one.kind is kind][: options.samples]]


def to_sample(found: Differing, shape: Shape, options: Options) -> Sample:
    """One difference as it is shown."""
    row = found.batch if found.stream is None else found.stream
    assert row is not None
    return Sample(
        kind=found.kind,
        key={name: MASK if name in options.mask else row[name].text for name in shape.key},
        cells=tuple(_cells(found, shape, options)),
        stream_rows=found.stream_rows,
        batch_rows=found.batch_rows,
    )


def _cells(found: Differing, shape: Shape, options: Options) -> list[Cell]:
    tolerances = options.tolerances(shape)
    shown = []
    for name in shape.measures:
        type_ = shape.columns[name]
        one, other = (None if side is None else side[name] for side in (found.stream, found.batch))
        masked = name in options.mask
        stream, batch = (None if value is None else MASK if masked else value.text for value in (one, other))
        if one is None or other is None:
            shown.append(Cell(name, stream, batch))
        elif not close(one, other, type_, tolerances.get(name)):
            shown.append(Cell(name, stream, batch, None if masked else _apart(one, other, type_)))
    return shown


def _apart(one: Shown, other: Shown, type_: DataType) -> str | None:
    """The stream's value minus the batch's, where that means something."""
    if one.text is None or other.text is None:
        return None
    name = type_.simpleString()
    if name == "bigint" or name.startswith("decimal"):
        return f"{minus(one.text, other.text):+f}"
    if name == "double":
        return f"{float(one.text) - float(other.text):+}"
    if name in ("timestamp", "timestamp_ntz"):
        try:
            apart = datetime.fromisoformat(one.text) - datetime.fromisoformat(other.text)
        except ValueError:
            return None
        return f"{apart.total_seconds():+f} s"
    return None
