"""Linear fingerprints: partials can be compared with a result without being merged.

For counts and sums, fingerprint(base) + fingerprint(partials) = fingerprint(merged), so that after a few new txids only
their partials are read. docs/digests.md says what such a fingerprint cannot tell apart.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from twinstream.errors import ShapeMismatch
from twinstream.operators.base import Operator, col
from twinstream.operators.measures.sums import EXACT_DIGITS
from twinstream.reconcile.canonical import nulls
from twinstream.reconcile.hashes import KEY_HASH, SEED, bucket, cells, comparable_rows
from twinstream.reconcile.partitions import few_partitions
from twinstream.reconcile.shape import Shape, shape_of
from twinstream.transaction import canonical_json

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

PRIMES = (2_147_483_647, 2_147_483_629, 2_147_483_587, 2_147_483_579)
"""The largest below 2^31: the product of two remainders fits into 64 bits with its sign."""
_FACTOR = (1 << 31) - 1
"""The bits of a hash that a value is multiplied by: other ones for each prime."""
_PACKED = struct.Struct("<H4I")
_START = "window_start"
Parts = tuple[int, int, int, int]


@dataclass(frozen=True)
class LinearFingerprint:
    """By bucket of the key: the sum over rows and measures of hash(key, measure) × value, modulo four primes."""

    shape: str
    buckets: Mapping[int, Parts]
    unclear: int = field(default=0, compare=False)
    """Rows that it could take for others: with a null, or without a number of rows that is at least 1."""

    def __add__(self, other: LinearFingerprint) -> LinearFingerprint:
        return self._with(other, 1)

    def __sub__(self, other: LinearFingerprint) -> LinearFingerprint:
        return self._with(other, -1)

    @property
    def hexdigest(self) -> str:
        """All buckets in one: equal for equal fingerprints."""
        return hashlib.blake2b(self.shape.encode() + b"\0" + self._packed(), digest_size=16).hexdigest()

    def differing(self, other: LinearFingerprint) -> tuple[int, ...]:
        """The buckets in which two results differ."""
        return tuple(sorted((self - other).buckets))

    def to_json(self) -> str:
        """The fingerprint as the ledger keeps it."""
        packed = base64.b85encode(self._packed()).decode()
        return canonical_json({"shape": self.shape, "linear": packed, "unclear": self.unclear})

    @classmethod
    def from_json(cls, text: str) -> LinearFingerprint:
        """The fingerprint that `to_json` wrote."""
        value = json.loads(text)
        packed = base64.b85decode(value["linear"])
        buckets: dict[int, Parts] = {number: (a, b, c, d) for number, a, b, c, d in _PACKED.iter_unpack(packed)}
        return cls(value["shape"], buckets, value["unclear"])

    def _packed(self) -> bytes:
        return b"".join(_PACKED.pack(number, *parts) for number, parts in sorted(self.buckets.items()))

    def _with(self, other: LinearFingerprint, sign: int) -> LinearFingerprint:
        if self.shape != other.shape:
            raise ShapeMismatch(
                f"Fingerprints of different shapes cannot be compared: {self.shape} and {other.shape}.",
                next_step="Compute both from the tables again.",
            )
        made: dict[int, Parts] = {}
        for number in {*self.buckets, *other.buckets}:
            ours, theirs = self.buckets.get(number, (0, 0, 0, 0)), other.buckets.get(number, (0, 0, 0, 0))
            a, b, c, d = ((x + sign * y) % p for x, y, p in zip(ours, theirs, PRIMES, strict=True))
            if a or b or c or d:
                made[number] = (a, b, c, d)
        return LinearFingerprint(self.shape, made, self.unclear + sign * other.unclear)


def linear_measures(operator: Operator) -> tuple[str, ...]:
    """The measures that a linear fingerprint is taken of; none if any measure is not a count or a sum.

    (The rows of an Append need no such thing: their digests already add up.)
    """
    measures = operator.canonical().get("measures")
    if not isinstance(measures, list) or any(measure["measure"] not in ("count", "sum") for measure in measures):
        return ()
    return tuple(measure["name"] for measure in measures)


def linear_key(operator: Operator) -> list[str]:
    """The columns by which states are merged."""
    return [*operator.keys, *([_START] if operator.window else [])]


def linear_fingerprint(rows: DataFrame, operator: Operator) -> LinearFingerprint:
    """The fingerprint of state rows, merged or not, or of result rows: for counts and sums the numbers are the same."""
    from pyspark.sql import functions as F

    measures = linear_measures(operator)
    assert measures, "only counts and sums have a linear fingerprint"
    key = linear_key(operator)
    shape = shape_of(rows.select(*map(col, (*key, *measures))).schema, key)
    places = cells(shape)
    keys = [F.col(places[name]) for name in key]
    hashes = comparable_rows(rows, shape).withColumns(
        {
            "first": F.xxhash64(KEY_HASH, *nulls(keys)),
            "second": F.xxhash64(F.lit(SEED), KEY_HASH, *nulls(keys)),
            **{f"r{number}": _remainder(F.col(places[name]), shape.columns[name], pair)
               for number, (name, pair) in enumerate((name, pair) for name in measures for pair in (0, 1))},
        }
    )  # fmt: skip
    terms: list[Column] = [F.lit(0).cast("bigint")] * len(PRIMES)
    for place, name in enumerate(measures):
        for number, prime in enumerate(PRIMES):
            pair, half = divmod(number, 2)
            chain = F.xxhash64(("first", "second")[pair], F.lit(_name_hash(name)).cast("bigint"))
            factor = F.shiftright(chain, 32 * half).bitwiseAND(F.lit(_FACTOR).cast("bigint"))
            modulus = F.lit(prime).cast("bigint")
            terms[number] += factor * (F.col(f"r{2 * place + pair}") % modulus) % modulus
    sums = [F.sum(term) for term in terms]
    unclear = F.count(F.when(_unclear(operator, places), F.lit(1)))
    with few_partitions(rows.sparkSession):
        found = hashes.groupBy(bucket(F.col(KEY_HASH)).alias("bucket")).agg(unclear, *sums).collect()
    made = {row[0]: tuple(total % prime for total, prime in zip(row[2:], PRIMES, strict=True)) for row in found}
    buckets = {number: parts for number, parts in made.items() if any(parts)}
    return LinearFingerprint(_text(shape), buckets, sum(row[1] for row in found))


def _unclear(operator: Operator, places: Mapping[str, str]) -> Column:
    """Whether the fingerprint could take a row for another one, or for none."""
    from pyspark.sql import functions as F

    measures: list[Mapping[str, object]] = operator.canonical()["measures"]  # type: ignore[assignment]
    rows = [str(one["name"]) for one in measures if one["measure"] == "count" and one["column"] is None]
    unclear = F.col(places[rows[0]]) < 1 if rows else F.lit(True)
    for place in places.values():
        unclear = unclear | F.col(place).isNull()
    return unclear


def _remainder(value: Column, type_: DataType, pair: int) -> Column:
    """The value, in units of its last digit, or what is the same modulo two of the primes; null counts as nothing.

    Decimals of few digits go through doubles, exactly: computing with wide ones costs most of the scan.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import DecimalType

    none = F.lit(0).cast("bigint")
    if not isinstance(type_, DecimalType):
        return F.coalesce(value, none)
    modulus = PRIMES[2 * pair] * PRIMES[2 * pair + 1]
    scaled = F.pmod(value, F.lit(Decimal(modulus).scaleb(-type_.scale)))
    units = (scaled * F.lit(Decimal(10**type_.scale))).cast("bigint")
    if type_.scale <= EXACT_DIGITS:
        near = value.cast("double")
        small = F.abs(near) < F.lit(float(10 ** (EXACT_DIGITS - type_.scale)))
        units = F.when(small, F.rint(near * F.lit(float(10**type_.scale))).cast("bigint")).otherwise(units)
    return F.coalesce(units, none)


def _name_hash(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little", signed=True)


def _text(shape: Shape) -> str:
    return f"linear form 2 {shape.text}"
