"""Differing rows as people read them: text, the differing cells marked, sensitive columns masked."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING

from twinstream.reconcile.canonical import text
from twinstream.reconcile.differences import within
from twinstream.reconcile.hashes import KEY_HASH, cells
from twinstream.reconcile.options import Options
from twinstream.reconcile.result import Cell, Difference, Sample
from twinstream.reconcile.shape import Shape

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

MASK = "•••"
LONGEST = 1000
"""Characters of a value that are shown."""


def draw_samples(classified: DataFrame, shape: Shape, options: Options) -> list[tuple[int, Sample]]:
    """The first rows of each kind by the hash of their key, so that the choice is random and always the same."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    if options.samples == 0:
        return []
    tolerances = options.tolerances(shape)
    order = Window.partitionBy("kind").orderBy(KEY_HASH, "stream", "batch")
    chosen = classified.withColumn("place", F.row_number().over(order)).where(F.col("place") <= options.samples)
    columns: list[Column] = []
    for name, place in cells(shape).items():
        type_ = shape.columns[name]
        values = [F.col(f"{side}.{place}") for side in ("stream", "batch")]
        differs = ~within(values[0], values[1], type_.simpleString(), tolerances.get(name))
        shown = [_shown(text(value, type_), name in options.mask) for value in values]
        columns.append(
            F.struct(differs.alias("differs"), shown[0].alias("stream"), shown[1].alias("batch")).alias(place)
        )
    found = chosen.select("kind", KEY_HASH, "place", "ns", "nb", *columns).collect()
    rank = list(Difference)
    found.sort(key=lambda row: (rank.index(Difference(row["kind"])), row["place"]))
    return [(row[KEY_HASH], _sample(row, shape, options)) for row in found]


def _shown(value: Column, masked: bool) -> Column:
    from pyspark.sql import functions as F

    if masked:
        return F.lit(MASK)
    return F.when(F.length(value) > LONGEST, F.concat(F.substring(value, 1, LONGEST), F.lit("…"))).otherwise(value)


def _sample(row: Row, shape: Shape, options: Options) -> Sample:
    kind = Difference(row["kind"])
    places = cells(shape)
    side = "batch" if kind is Difference.MISSING else "stream"
    shown = []
    for name in shape.measures:
        cell = row[places[name]]
        if kind is Difference.MISMATCHED:
            if cell["differs"]:
                apart = None if name in options.mask else _apart(cell, shape.columns[name].simpleString())
                shown.append(Cell(name, cell["stream"], cell["batch"], apart))
        else:
            shown.append(Cell(name, **{"stream": None, "batch": None, side: cell[side]}))
    return Sample(
        kind=kind,
        key={name: row[places[name]][side] for name in shape.key},
        cells=tuple(shown),
        stream_rows=row["ns"],
        batch_rows=row["nb"],
    )


def _apart(cell: Row, type_: str) -> str | None:
    """The stream's value minus the batch's, where that means something."""
    stream, batch = cell["stream"], cell["batch"]
    if stream is None or batch is None:
        return None
    if type_ == "bigint" or type_.startswith("decimal"):
        with localcontext() as context:
            context.prec = 80
            return f"{Decimal(stream) - Decimal(batch):+f}"
    if type_ == "double":
        return f"{float(stream) - float(batch):+}"
    if type_ in ("timestamp", "timestamp_ntz"):
        try:
            return f"{(datetime.fromisoformat(stream) - datetime.fromisoformat(batch)).total_seconds():+f} s"
        except ValueError:
            return None
    return None
