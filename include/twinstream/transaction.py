"""The values that transactions are made of: tallies, ranges, batches, attempts, manifests.

They are plain frozen data with their arithmetic; ledger, runtime and sinks share them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Self

_MASK = (1 << 64) - 1


class State(StrEnum):
    """Where a txid stands."""

    PLANNED = "PLANNED"
    PROCESSING = "PROCESSING"
    PROCESSED = "PROCESSED"
    COMMITTED = "COMMITTED"
    HELD = "HELD"


class Outcome(StrEnum):
    """Where an attempt stands, or how it ended."""

    RUNNING = "running"
    PROCESSED = "processed"
    COMMITTED = "committed"
    FAILED = "failed"
    FENCED = "fenced"
    ABANDONED = "abandoned"


def canonical_json(value: object) -> str:
    """JSON with one spelling for one value, fit to be hashed."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True)
class Tally:
    """Count, sum and XOR (modulo 2**64) of record hashes: Storm's acknowledgement for a set of records."""

    count: int = 0
    sum: int = 0
    xor: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.count + other.count, (self.sum + other.sum) & _MASK, self.xor ^ other.xor)

    def __sub__(self, other: Tally) -> Tally:
        return Tally(self.count - other.count, (self.sum - other.sum) & _MASK, self.xor ^ other.xor)

    @classmethod
    def of_halves(cls, count: int | None, low: int | None, high: int | None, xor: int | None) -> Tally:
        """From Spark's sums over the low and the (signed) high 32 bits of the hashes, which cannot overflow."""
        return cls(int(count or 0), ((int(high or 0) << 32) + int(low or 0)) & _MASK, int(xor or 0) & _MASK)

    def to_list(self) -> list[int | str]:
        return [self.count, f"{self.sum:016x}", f"{self.xor:016x}"]

    @classmethod
    def from_list(cls, value: list[Any]) -> Tally:
        return cls(int(value[0]), int(value[1], 16), int(value[2], 16))


CLASSES = ("dead", "duplicate", "filtered", "late", "discarded", "emitted")


@dataclass(frozen=True)
class Accounting:
    """Every record that a txid read, in exactly one class."""

    dead: Tally = Tally()
    duplicate: Tally = Tally()
    filtered: Tally = Tally()
    late: Tally = Tally()
    discarded: Tally = Tally()
    emitted: Tally = Tally()
    rows_out: int = 0

    @property
    def read(self) -> Tally:
        return self.dead + self.duplicate + self.filtered + self.late + self.discarded + self.emitted

    def with_late(self, late: Tally, late_rows: int) -> Accounting:
        """Moves late records out of the emitted ones; known only when the watermark is fixed, at commit."""
        return replace(self, late=late, emitted=self.emitted - late, rows_out=self.rows_out - late_rows)

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name).to_list() for name in CLASSES} | {"rows_out": self.rows_out}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Accounting:
        return cls(**{name: Tally.from_list(value[name]) for name in CLASSES}, rows_out=value["rows_out"])


@dataclass(frozen=True)
class Range:
    """An immutable slice of a source. `payload` is the source's own: files, partition offsets, versions."""

    payload: Mapping[str, Any]
    records: int
    """How many records the source says the range holds."""
    size: int
    """Bytes, for batch sizing."""
    claims: tuple[str, ...] = ()
    """Names that may belong to one txid only (for files: their paths)."""
    hints: Mapping[str, Any] = field(default_factory=dict)
    """What saves work when the range is looked at again; not part of what it is."""
    exact: bool = True
    """Whether `records` is exact, or only the most it can be, as with offsets: some belong to no record."""

    @property
    def digest(self) -> str:
        return hashlib.blake2b(canonical_json(self.payload).encode(), digest_size=16).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        return {
            "payload": dict(self.payload),
            "records": self.records,
            "size": self.size,
            "claims": list(self.claims),
            "hints": dict(self.hints),
            "exact": self.exact,
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        return cls(**{**value, "claims": tuple(value["claims"])})


@dataclass(frozen=True)
class Batch:
    """One txid as the ledger has it."""

    txid: int
    state: State
    range: Range
    range_digest: str
    batch_time: int
    """Microseconds since 1970, logged with the range: what current_timestamp means for this txid."""
    exempt: bool = False
    """Reinjected late rows: they count whatever the watermark says."""
    attempt: int | None = None
    input: Tally | None = None
    """What the first processed attempt read; every replay must read the same."""
    waived: bool = False
    """A person released it: the gate is not asked again."""
    discard_reason: str | None = None
    held_reason: str | None = None
    accounting: Accounting | None = None
    watermark: int | None = None
    highest_event_time: int | None = None
    epoch: int | None = None
    committed_at: int | None = None


@dataclass(frozen=True)
class StagedFile:
    """A file that an attempt wrote and that a commit will name."""

    kind: str
    path: str
    size: int
    rows: int
    first_txid: int
    last_txid: int


@dataclass(frozen=True)
class TxidResult:
    """What processing found out about one txid."""

    txid: int
    accounting: Accounting
    highest_event_time: int | None
    earliest_closing: int | None
    """The earliest moment at which any of its rows would be late; decides cheaply that nothing is."""
    digest: Tally
    """Over the rows staged for the result."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "txid": self.txid,
            "accounting": self.accounting.to_dict(),
            "highest_event_time": self.highest_event_time,
            "earliest_closing": self.earliest_closing,
            "digest": self.digest.to_list(),
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> TxidResult:
        return cls(
            txid=value["txid"],
            accounting=Accounting.from_dict(value["accounting"]),
            highest_event_time=value["highest_event_time"],
            earliest_closing=value["earliest_closing"],
            digest=Tally.from_list(value["digest"]),
        )


@dataclass(frozen=True)
class Staged:
    """All that an attempt staged: the files and what is known of each txid."""

    files: tuple[StagedFile, ...]
    results: tuple[TxidResult, ...]
    seconds: float = 0.0

    def to_json(self) -> str:
        return canonical_json(
            {
                "files": [asdict(file) for file in self.files],
                "results": [result.to_dict() for result in self.results],
                "seconds": self.seconds,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Staged:
        value = json.loads(text)
        return cls(
            files=tuple(StagedFile(**file) for file in value["files"]),
            results=tuple(TxidResult.from_dict(result) for result in value["results"]),
            seconds=value["seconds"],
        )


@dataclass(frozen=True)
class Attempt:
    """The n-th try at a group of txids."""

    id: int
    first: int
    last: int
    number: int
    epoch: int
    staging: str
    outcome: Outcome = Outcome.RUNNING
    staged: Staged | None = None


@dataclass(frozen=True)
class Manifest:
    """What the sink keeps of a committed txid, in the same commit as its rows."""

    txid: int
    attempt: int
    epoch: int
    range_digest: str
    range: Range
    batch_time: int
    highest_event_time: int | None
    watermark: int | None
    late_before: int | None
    """Rows closing at or before this moment are late in this txid: the watermark of txid - 1, null when exempt."""
    accounting: Accounting
    digest: Tally
    definition_hash: str
    files: tuple[str, ...] = ()
    exempt: bool = False
    discard_reason: str | None = None

    def to_json(self) -> str:
        value = {name: getattr(self, name) for name in self.__dataclass_fields__}
        value["range"] = self.range.to_dict()
        value["accounting"] = self.accounting.to_dict()
        value["digest"] = self.digest.to_list()
        value["files"] = list(self.files)
        return canonical_json(value)

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        value = json.loads(text)
        value["range"] = Range.from_dict(value["range"])
        value["accounting"] = Accounting.from_dict(value["accounting"])
        value["digest"] = Tally.from_list(value["digest"])
        value["files"] = tuple(value["files"])
        return cls(**value)


def next_watermark(before: int | None, highest_event_time: int | None, delay: int) -> int | None:
    """The watermark after a txid: it follows the highest event time at a distance and never goes back."""
    if highest_event_time is None:
        return before
    candidate = highest_event_time - delay
    return candidate if before is None else max(before, candidate)
