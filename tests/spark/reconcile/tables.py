"""Tables of every type as Python has them, the damage that is done to them, and the truth about it in plain Python."""

from __future__ import annotations

import copy
import math
import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.spark.operators.draws import FLOATS, KINDS, STRINGS, Kind, among, some

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def _mapping(rng: random.Random) -> dict[str, Any]:
    return {rng.choice(STRINGS): rng.choice([*FLOATS, None]) for _ in range(rng.randint(0, 3))}


def _deep(rng: random.Random) -> list[Any]:
    return [None if rng.random() < 0.2 else (_mapping(rng), rng.choice([1, None])) for _ in range(rng.randint(0, 2))]


EVERY_KIND = {
    **KINDS,
    "map": Kind("map<string,double>", _mapping),
    "deep": Kind("array<struct<m:map<string,double>,n:bigint>>", _deep),
    "ints": Kind("array<int>", some([1, 2, -1])),
    "both": Kind("struct<p:array<int>,q:array<int>>", lambda rng: (some([1, 2])(rng), some([1, 2])(rng))),
}
IDS = {"id": Kind("bigint", among([None, *range(60)])), "half": Kind("string", among([None, "x", ""]))}


@dataclass
class Rows:
    """Rows as Python drew them."""

    kinds: dict[str, Kind]
    rows: list[dict[str, Any]] = field(default_factory=list)

    def frame(self, spark: SparkSession, parts: int = 2, types: dict[str, str] | None = None) -> DataFrame:
        """The rows in Spark; `types` stores columns in other types."""
        from pyspark.sql import functions as F

        schema = ", ".join(f"`{name}` {kind.transport or kind.type_}" for name, kind in self.kinds.items())
        raw = spark.createDataFrame([tuple(row[name] for name in self.kinds) for row in self.rows], schema)
        made = {name: F.expr(kind.convert.format(f"`{name}`")) for name, kind in self.kinds.items()}
        casts = types or {}
        return raw.repartition(parts).select(
            *(
                value.cast(casts[name]).alias(name) if name in casts else value.alias(name)
                for name, value in made.items()
            )
        )

    def copy(self) -> Rows:
        return Rows(self.kinds, copy.deepcopy(self.rows))


def draw_rows(kinds: dict[str, Kind], rng: random.Random, count: int) -> Rows:
    every = {**IDS, **kinds}
    return Rows(every, [draw_row(every, rng) for _ in range(count)])


def draw_row(kinds: dict[str, Kind], rng: random.Random) -> dict[str, Any]:
    return {name: None if rng.random() < 0.1 else kind.draw(rng) for name, kind in kinds.items()}


def same(value: Any) -> Any:
    """Equal for values that are the same, -0.0 and NaN included."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return ("map", frozenset((key, same(item)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return tuple(same(item) for item in value)
    if isinstance(value, bool):
        return ("bool", value)
    return value


def damage(table: Rows, rng: random.Random, times: int) -> Rows:
    """Rows taken away, doubled, made up, or changed in some columns."""
    harmed = table.copy()
    for _ in range(times):
        what = rng.choice(["take", "double", "make", "change", "change", "shift"])
        if what == "make" or not harmed.rows:
            harmed.rows.append(draw_row(table.kinds, rng))
            continue
        place = rng.randrange(len(harmed.rows))
        row = harmed.rows[place]
        if what == "take":
            del harmed.rows[place]
        elif what == "double":
            harmed.rows.append(copy.deepcopy(row))
        elif what == "change":
            name = rng.choice(list(table.kinds))
            row[name] = None if rng.random() < 0.3 else table.kinds[name].draw(rng)
        else:
            one, other = rng.sample(list(table.kinds), 2)
            if table.kinds[one].type_ == table.kinds[other].type_:
                row[one], row[other] = row[other], row[one]
    rng.shuffle(harmed.rows)
    return harmed


def truth(stream: Rows, batch: Rows, key: list[str]) -> dict[tuple[Any, ...], Counter[str]]:
    """What differs, by key and kind."""
    names = list(stream.kinds)
    sides = []
    for table in (stream, batch):
        by_key: dict[tuple[Any, ...], Counter[Any]] = defaultdict(Counter)
        for row in table.rows:
            by_key[tuple(same(row[name]) for name in key)][tuple(same(row[name]) for name in names)] += 1
        sides.append(by_key)
    found: dict[tuple[Any, ...], Counter[str]] = {}
    for one in {*sides[0], *sides[1]}:
        ours, theirs = sides[0][one], sides[1][one]
        more, less = (ours - theirs).total(), (theirs - ours).total()
        pairs = min(more, less)
        kinds = Counter(
            {
                "mismatched": pairs,
                "missing": less - pairs,
                ("duplicated" if theirs.total() else "phantom"): more - pairs,
            }
        )
        if kinds.total():
            found[one] = +kinds
    return found
