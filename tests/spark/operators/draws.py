"""Random prepared rows of every column type, with the values that break things."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

YEAR_1 = -62_135_596_800_000_000
YEAR_9999 = 253_402_300_799_999_999
MINUTE = 60_000_000
STRINGS = ["", " ", "a", "A", "b", "ß", "é", "e\u0301", "日本", "\U0001f600", "null", "NaN", "-0.0", "z" * 300]
FLOATS = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.5, -1.5, 5e-324, 1.7e308, -1.7e308, 0.1]
FLOATS_32 = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.5, -1.5, 3.4e38, -3.4e38]
TIMES = [
    YEAR_1,
    YEAR_9999,
    0,
    -1,
    -MINUTE,
    -MINUTE - 1,
    MINUTE - 1,
    MINUTE,
    1_767_225_600_000_000,
    -2_208_988_800_000_001,
]

Draw = Callable[[random.Random], Any]


@dataclass(frozen=True)
class Kind:
    """A column type: how a value travels from Python into Spark, and how to draw one."""

    type_: str
    draw: Draw
    transport: str = ""
    convert: str = "{}"

    @property
    def numeric(self) -> bool:
        """Whether it can be summed."""
        return self.type_ in ("tinyint", "smallint", "int", "bigint") or (
            self.type_.startswith("decimal") and int(self.type_[8:].split(",")[0]) <= 28
        )

    @property
    def plain(self) -> bool:
        """Whether it is not made of other types."""
        return "<" not in self.type_


def integers(bits: int) -> Draw:
    extremes = [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 0, -1, 1]
    return lambda rng: rng.choice(extremes) if rng.random() < 0.5 else rng.randint(-100, 100)


def decimals(precision: int, scale: int) -> Draw:
    top = 10**precision - 1

    def draw(rng: random.Random) -> Decimal:
        units = rng.choice([top, -top, top - 1, 0, 1, -1, rng.randint(-top, top), rng.randint(-50, 50)])
        return Decimal((units < 0, tuple(map(int, str(abs(units)))), -scale))

    return draw


def among(values: list[Any]) -> Draw:
    return lambda rng: rng.choice(values)


def some(values: list[Any]) -> Draw:
    """Short lists, with nulls inside."""
    return lambda rng: [rng.choice([*values, None]) for _ in range(rng.randint(0, 2))]


KINDS = {
    "tiny": Kind("tinyint", integers(8)),
    "small": Kind("smallint", integers(16)),
    "int": Kind("int", integers(32)),
    "big": Kind("bigint", integers(64)),
    "dec7": Kind("decimal(7,2)", decimals(7, 2)),
    "dec12": Kind("decimal(12,2)", decimals(12, 2)),
    "dec18": Kind("decimal(18,0)", decimals(18, 0)),
    "dec28": Kind("decimal(28,2)", decimals(28, 2)),
    "frac28": Kind("decimal(28,28)", decimals(28, 28)),
    "dec38": Kind("decimal(38,10)", decimals(38, 10)),
    "float": Kind("float", among(FLOATS_32)),
    "double": Kind("double", among(FLOATS)),
    "str": Kind("string", among(STRINGS)),
    "bin": Kind("binary", lambda rng: rng.choice(STRINGS).encode()),
    "bool": Kind("boolean", among([True, False])),
    "date": Kind("date", among([-719162, 2932896, 0, -1, 20000]), "int", "date_from_unix_date({})"),
    "time": Kind("timestamp", among(TIMES), "bigint", "timestamp_micros({})"),
    "ntz": Kind("timestamp_ntz", among(TIMES), "bigint", "cast(timestamp_micros({}) as timestamp_ntz)"),
    "floats": Kind("array<double>", some(FLOATS)),
    "texts": Kind("array<string>", some(STRINGS)),
    "pair": Kind(
        "struct<x:double,y:string>", lambda rng: (rng.choice([*FLOATS, None]), rng.choice([*STRINGS[:4], None]))
    ),
}

HIDDEN = {
    "_txid": Kind("bigint", lambda rng: rng.randint(1, 9)),
    "_kept": Kind("boolean", lambda rng: rng.random() < 0.9),
    "_event_time": Kind(
        "timestamp",
        lambda rng: rng.choice(TIMES) if rng.random() < 0.5 else rng.randint(-2 * MINUTE, 2 * MINUTE),
        "bigint",
        "timestamp_micros({})",
    ),
    "_record_id": Kind("string", lambda rng: rng.choice(["", "r1", "r2", "R1", "ß", "日本"])),
}


@dataclass(frozen=True)
class Table:
    """Rows as Python drew them: the same cells go to Spark and to the truth in plain Python."""

    kinds: dict[str, Kind]
    rows: list[dict[str, Any]]

    @property
    def columns(self) -> dict[str, str]:
        """The prepared columns with their types."""
        return {name: kind.type_ for name, kind in self.kinds.items() if not name.startswith("_")}

    def frame(self, spark: SparkSession) -> DataFrame:
        """The rows in Spark, with `_class` telling kept rows from others."""
        from pyspark.sql import functions as F

        schema = ", ".join(f"`{name}` {kind.transport or kind.type_}" for name, kind in self.kinds.items())
        raw = spark.createDataFrame([tuple(row[name] for name in self.kinds) for row in self.rows], schema)
        columns: list[Column] = [
            F.expr(kind.convert.format(f"`{name}`")).alias(name) for name, kind in self.kinds.items()
        ]
        return raw.select(*columns, F.when(F.col("_kept"), "kept").otherwise("filtered").alias("_class"))


def draw_table(kinds: dict[str, Kind], seed: int, cases: int = 60, most: int = 14) -> Table:
    """Many small cases in one table, told apart by the column `case`; some cells and some columns are null."""
    rng = random.Random(seed)
    every = {"case": Kind("int", lambda _: 0), **kinds, **HIDDEN}
    rows = []
    for case in range(cases):
        blank = {name for name in kinds if rng.random() < 0.05}
        for _ in range(rng.randint(1, most)):
            row = {
                name: None if name in blank or (name in kinds and rng.random() < 0.1) else kind.draw(rng)
                for name, kind in every.items()
            }
            rows.append({**row, "case": case})
    return Table(every, rows)
