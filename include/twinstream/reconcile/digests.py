"""Bucket digests: an order-independent fingerprint of a table in one scan, without a shuffle of its rows.

docs/digests.md says what is hashed, what the digest cannot miss and how improbable the rest is.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from twinstream.errors import ShapeMismatch
from twinstream.reconcile.hashes import BUCKETS, KEY_HASH, ROW_HASHES, bucket, halves, hashed_rows
from twinstream.reconcile.partitions import few_partitions
from twinstream.reconcile.shape import Shape
from twinstream.transaction import canonical_json

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MASK = (1 << 64) - 1
_PACKED = struct.Struct("<Hq4Q")


class Digest(NamedTuple):
    """The number of rows, and sum and XOR (modulo 2^64) of the row hashes under two seeds."""

    rows: int = 0
    sum_a: int = 0
    xor_a: int = 0
    sum_b: int = 0
    xor_b: int = 0

    def plus(self, other: Digest, sign: int = 1) -> Digest:
        """The digest of both sets of rows together, or of the rest when `other` is taken away."""
        return Digest(
            self.rows + sign * other.rows,
            (self.sum_a + sign * other.sum_a) & _MASK,
            self.xor_a ^ other.xor_a,
            (self.sum_b + sign * other.sum_b) & _MASK,
            self.xor_b ^ other.xor_b,
        )


_EMPTY = Digest()


@dataclass(frozen=True)
class BucketDigests:
    """The digests of a table's rows by bucket, those without rows left out. Of one shape they add up and subtract."""

    shape: str
    buckets: Mapping[int, Digest]

    def __add__(self, other: BucketDigests) -> BucketDigests:
        return self._with(other, 1)

    def __sub__(self, other: BucketDigests) -> BucketDigests:
        return self._with(other, -1)

    @property
    def rows(self) -> int:
        """How many rows the table has."""
        return sum(digest.rows for digest in self.buckets.values())

    @property
    def hexdigest(self) -> str:
        """All buckets in one: equal for equal digests."""
        return hashlib.blake2b(self.shape.encode() + b"\0" + self._packed(), digest_size=16).hexdigest()

    def differing(self, other: BucketDigests) -> tuple[int, ...]:
        """The buckets in which two tables differ."""
        return tuple(sorted((self - other).buckets))

    def to_json(self) -> str:
        """The digests as the ledger keeps them."""
        return canonical_json({"shape": self.shape, "buckets": base64.b85encode(self._packed()).decode()})

    @classmethod
    def from_json(cls, text: str) -> BucketDigests:
        """The digests that `to_json` wrote."""
        value = json.loads(text)
        packed = base64.b85decode(value["buckets"])
        return cls(value["shape"], {number: Digest(*rest) for number, *rest in _PACKED.iter_unpack(packed)})

    def _packed(self) -> bytes:
        return b"".join(_PACKED.pack(number, *digest) for number, digest in sorted(self.buckets.items()))

    def _with(self, other: BucketDigests, sign: int) -> BucketDigests:
        if self.shape != other.shape:
            raise ShapeMismatch(
                f"Digests of different shapes cannot be compared: {self.shape} and {other.shape}.",
                next_step="Compute both from the tables again.",
            )
        numbers = {*self.buckets, *other.buckets}
        made = {n: self.buckets.get(n, _EMPTY).plus(other.buckets.get(n, _EMPTY), sign) for n in numbers}
        return BucketDigests(self.shape, {number: digest for number, digest in made.items() if digest != _EMPTY})


def digest(frame: DataFrame, shape: Shape) -> BucketDigests:
    """The digests of a table: one scan, one row per bucket and task shuffled."""
    from pyspark.sql import functions as F

    rows = hashed_rows(frame, shape)
    grouped = rows.groupBy(bucket(F.col(KEY_HASH)).alias("bucket")).agg(*_aggregates())
    with few_partitions(frame.sparkSession):
        found = grouped.collect()
    return BucketDigests(shape.text, {row[0]: _of_row(row[1:]) for row in found})


def _aggregates() -> list[Column]:
    from pyspark.sql import functions as F

    made = [F.count(F.lit(1))]
    for name in ROW_HASHES:
        low, high = halves(F.col(name))
        made += [F.sum(low), F.sum(high), F.bit_xor(name)]
    return made


def _of_row(values: tuple[int, ...]) -> Digest:
    count, low_a, high_a, xor_a, low_b, high_b, xor_b = values
    return Digest(count, (high_a << 32) + low_a & _MASK, xor_a & _MASK, (high_b << 32) + low_b & _MASK, xor_b & _MASK)


assert BUCKETS <= 1 << 16
