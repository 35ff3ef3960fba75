"""Bucket digests: an order-independent fingerprint of a table in one scan, without a shuffle of its rows.

docs/digests.md says what is hashed, what the digest cannot miss and how improbable the rest is.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
from collections.abc import Iterable, Mapping
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
_PACKED = struct.Struct("<HqQQ")
FORM = 4
"""Goes up with every change of what is hashed: digests of another form cannot be compared with those made now."""


class Digest(NamedTuple):
    """The number of rows, the sum of their hashes under one seed and the XOR under another (modulo 2^64)."""

    rows: int = 0
    sum: int = 0
    xor: int = 0

    def plus(self, other: Digest, sign: int = 1) -> Digest:
        """The digest of both sets of rows together, or of the rest when `other` is taken away."""
        return Digest(self.rows + sign * other.rows, (self.sum + sign * other.sum) & _MASK, self.xor ^ other.xor)


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

    def rows_in(self, buckets: Iterable[int]) -> int:
        """How many rows some of the buckets have."""
        return sum(self.buckets.get(number, _EMPTY).rows for number in buckets)

    @property
    def hexdigest(self) -> str:
        """All buckets in one, with the form in front: equal for equal digests."""
        digest = hashlib.blake2b(self.shape.encode() + b"\0" + self._packed(), digest_size=16).hexdigest()
        return f"{self.form}:{digest}"

    @property
    def form(self) -> int:
        """Of what form the hashes are."""
        found = re.match(r"form (\d+) ", self.shape)
        return int(found[1]) if found else 0

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


def digested(shape: Shape) -> str:
    """What digests say they are of: the shape, and the form of the hashes."""
    return f"form {FORM} {shape.text}"


def is_current(hexdigest: str) -> bool:
    """Whether a digest that was kept is of the form that is made now."""
    return hexdigest.startswith(f"{FORM}:")


def digest(frame: DataFrame, shape: Shape) -> BucketDigests:
    """The digests of a table: one scan, one row per bucket and task shuffled."""
    from pyspark.sql import functions as F

    rows = hashed_rows(frame, shape)
    grouped = rows.groupBy(bucket(F.col(KEY_HASH)).alias("bucket")).agg(*_aggregates())
    with few_partitions(frame.sparkSession):
        found = grouped.collect()
    return BucketDigests(digested(shape), {row[0]: _of_row(row[1:]) for row in found})


def _aggregates() -> list[Column]:
    from pyspark.sql import functions as F

    added, mixed = ROW_HASHES
    low, high = halves(F.col(added))
    return [F.count(F.lit(1)), F.sum(low), F.sum(high), F.bit_xor(mixed)]


def _of_row(values: tuple[int, ...]) -> Digest:
    count, low, high, xor = values
    return Digest(count, (high << 32) + low & _MASK, xor & _MASK)


assert BUCKETS <= 1 << 16
