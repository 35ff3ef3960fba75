"""The two roads to a result, and how results are compared."""

from __future__ import annotations

import random
from functools import reduce
from typing import TYPE_CHECKING, Any

from twinstream.operators import Operator

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame


def batch(operator: Operator, rows: DataFrame) -> DataFrame:
    """The plain query over the kept rows."""
    return operator.full(rows.where("_kept").drop("_txid", "_kept", "_class"))


def stored_partials(operator: Operator, rows: DataFrame, folder: Path) -> DataFrame:
    """Every txid's partial, written and read back as the sink does it."""
    path = str(folder / "partials")
    partials = operator.partial(rows, ["_txid", "_class"], [])
    partials.where("_class = 'kept'").drop("_class").write.mode("overwrite").parquet(path)
    return rows.sparkSession.read.schema(partials.drop("_class").schema).parquet(path)


def merged_at_once(operator: Operator, partials: DataFrame) -> DataFrame:
    """All partials merged in one step."""
    return operator.merge(partials.drop("_txid"))


def merged_by_tree(operator: Operator, partials: DataFrame, seed: int) -> DataFrame:
    """Merges of merges and partials: the txids are the leaves of a random tree."""
    rng = random.Random(seed)
    txids = list(range(1, 10))
    rng.shuffle(txids)
    cuts = sorted(rng.sample(range(1, 9), 2))
    leaves = [txids[: cuts[0]], txids[cuts[0] : cuts[1]], txids[cuts[1] :]]
    some = [partials.where(partials["_txid"].isin(leaf)).drop("_txid") for leaf in leaves]
    inner = operator.merge(union(operator.merge(some[0]), some[1]))
    return operator.merge(union(some[2], operator.merge(inner)) if rng.random() < 0.5 else union(inner, some[2]))


def union(*frames: DataFrame) -> DataFrame:
    """Rows of several frames, in whatever order."""
    return reduce(lambda left, right: left.unionByName(right), frames)


def shown(frame: DataFrame) -> list[tuple[Any, ...]]:
    """All rows as sorted text: it tells -0.0 from 0.0, and takes years that Python has not."""
    from pyspark.sql import functions as F

    binary = {name for name, type_ in frame.dtypes if type_ == "binary"}
    cells = [
        (F.hex(frame[f"`{name}`"]) if name in binary else frame[f"`{name}`"].cast("string")).alias(f"c{place}")
        for place, name in enumerate(frame.columns)
    ]
    return sorted((tuple(row) for row in frame.select(*cells).collect()), key=repr)
