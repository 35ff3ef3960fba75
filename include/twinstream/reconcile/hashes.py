"""Rows as numbers: the hash of the key, which says the bucket, and the hash of the whole row under two seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeGuard

from twinstream.operators.base import col
from twinstream.operators.measures.sums import EXACT_DIGITS
from twinstream.reconcile.canonical import comparable, hashable, is_nested, nulls
from twinstream.reconcile.shape import Shape, shape_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, DecimalType, StructType

BUCKETS = 4096
SEED = 0x7477696E
"""Spark's hash has one seed of its own; this comes first in the second chain, so that all is hashed under another."""
KEY_HASH = "_key_hash"
ROW_HASHES = ("h1", "h2")


def cells(shape: Shape) -> dict[str, str]:
    """Columns by their places: names of users could be anything."""
    return {name: f"c{place}" for place, name in enumerate(shape.names)}


def comparable_rows(frame: DataFrame, shape: Shape) -> DataFrame:
    """The rows in comparable form, one column per place, with the hash of the key."""
    from pyspark.sql import functions as F

    rows = _in_places(frame, shape)
    return rows.select(key_hash(shape).alias(KEY_HASH), *(F.col(place) for place in cells(shape).values()))


def hashed_rows(frame: DataFrame, shape: Shape) -> DataFrame:
    """Every row's key hash and its two row hashes, which go on from the key's: hashing a key twice costs the most.

    Two steps, so that what both hashes need is computed once.
    """
    from pyspark.sql import functions as F

    places = cells(shape)
    values = {place: hashable(F.col(place), shape.columns[name]) for name, place in places.items()}
    flags = {f"n{n}": flag for n, flag in enumerate(nulls([F.col(place) for place in places.values()]))}
    # Columns that stay as they are must not be renamed here: Spark would try each old name beside each new one.
    nested = {place: f"h{place}" for name, place in places.items() if is_nested(shape.columns[name])}
    once = _in_places(frame, shape).select(
        key_hash(shape).alias(KEY_HASH),
        *(flag.alias(name) for name, flag in flags.items()),
        *(value.alias(nested[place]) if place in nested else F.col(place) for place, value in values.items()),
    )
    every = [F.col(nested.get(place, place)) for place in places.values()]
    return once.select(F.col(KEY_HASH), *_chains(shape, [F.col(name) for name in flags], every))


def row_hashes(shape: Shape) -> list[Column]:
    """The same two row hashes of a comparable row."""
    from pyspark.sql import functions as F

    places = cells(shape)
    values = [hashable(F.col(place), shape.columns[name]) for name, place in places.items()]
    return _chains(shape, nulls([F.col(place) for place in places.values()]), values)


def key_hash(shape: Shape) -> Column:
    """64 bits over the key of a comparable row; keys that differ only in where a null stands may share it."""
    from pyspark.sql import functions as F

    places = cells(shape)
    return hash_of_key([(F.col(places[name]), shape.columns[name]) for name in shape.key])


def key_hash_in(schema: StructType, key: Sequence[str]) -> Column:
    """The same hash in a table as it is."""
    shape = shape_of(schema, key)
    values = [(comparable(col(name), schema[name].dataType, shape.columns[name]), name) for name in key]
    return hash_of_key([(value, shape.columns[name]) for value, name in values])


def hash_of_key(values: Sequence[tuple[Column, DataType]]) -> Column:
    """The same hash of comparable values with their types."""
    from pyspark.sql import functions as F

    return F.xxhash64(*([hashable(value, type_) for value, type_ in values] or [F.lit(0)]))


def bucket(key: Column) -> Column:
    """The bucket of a key hash."""
    from pyspark.sql import functions as F

    return key.bitwiseAND(F.lit(BUCKETS - 1).cast("bigint")).cast("int")


def halves(value: Column) -> tuple[Column, Column]:
    """The low and the (signed) high 32 bits of a hash: their sums cannot overflow below 2^31 rows."""
    from pyspark.sql import functions as F

    return value.bitwiseAND(F.lit(0xFFFF_FFFF).cast("bigint")), F.shiftright(value, 32)


def _chains(shape: Shape, flags: list[Column], values: list[Column]) -> list[Column]:
    from pyspark.sql import functions as F

    rest = dict(zip(shape.names[len(shape.key) :], values[len(shape.key) :], strict=True))
    parts = [part for name, value in rest.items() for part in _parts(value, shape.columns[name])]
    first = F.xxhash64(KEY_HASH, *flags, *parts)
    second = F.xxhash64(F.lit(SEED), KEY_HASH, *flags, *parts)
    return [first.alias(ROW_HASHES[0]), second.alias(ROW_HASHES[1])]


def _parts(value: Column, type_: DataType) -> list[Column]:
    """What is hashed of a value: itself, but for wide decimals, which are no machine words and slow to hash.

    Of these a double, which tells those of up to 15 digits apart, and themselves only where they have more.
    """
    from pyspark.sql import functions as F

    if not _is_wide(type_):
        return [value]
    near = value.cast("double")
    return [near, F.when(F.abs(near) >= F.lit(float(10.0 ** (EXACT_DIGITS - type_.scale))), value)]


def _is_wide(type_: DataType) -> TypeGuard[DecimalType]:
    from pyspark.sql.types import DecimalType

    return isinstance(type_, DecimalType) and type_.precision > 18


def _in_places(frame: DataFrame, shape: Shape) -> DataFrame:
    schema = frame.schema
    return frame.select(
        *(
            comparable(col(name), schema[name].dataType, shape.columns[name]).alias(place)
            for name, place in cells(shape).items()
        )
    )
