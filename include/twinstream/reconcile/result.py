"""What a reconciliation found: one frozen value that the command line, the report, the ledger and the pages share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from twinstream.transaction import Accounting


class Difference(StrEnum):
    """Why a row of the stream is not the row of the batch."""

    MISSING = "missing"
    PHANTOM = "phantom"
    DUPLICATED = "duplicated"
    MISMATCHED = "mismatched"
    LATE = "late"
    SOURCE_CHANGED = "source changed"
    DEFINITION_CHANGED = "definition changed"
    NON_DETERMINISTIC = "non-deterministic"


class Verdict(StrEnum):
    """The answer to 'are these numbers right?'."""

    EQUAL = "equal"
    WARNING = "warning"
    DIFFERENT = "different"


@dataclass(frozen=True)
class Cell:
    """One column in which a row differs; values as text, None for null or where the side has no such row."""

    column: str
    stream: str | None
    batch: str | None
    difference: str | None = None


@dataclass(frozen=True)
class Sample:
    """One differing row."""

    kind: Difference
    key: Mapping[str, str | None]
    cells: tuple[Cell, ...] = ()
    stream_rows: int = 1
    batch_rows: int = 1
    txids: tuple[int, ...] = ()


@dataclass(frozen=True)
class Side:
    """One of the two tables."""

    name: str
    rows: int
    digest: str
    """All buckets in one, as hexadecimal digits."""
    seconds: float


@dataclass(frozen=True)
class Comparison:
    """Two tables compared: exact counts, capped samples."""

    stream: Side
    batch: Side
    counts: Mapping[Difference, int]
    samples: tuple[Sample, ...]
    heat: tuple[int, ...]
    """Differing rows along the buckets, in at most 256 cells."""
    buckets: int
    differing_buckets: int
    seconds: float

    @property
    def equal(self) -> bool:
        """No row differs; late rows are no defect."""
        return not any(count for kind, count in self.counts.items() if kind is not Difference.LATE)


@dataclass(frozen=True)
class TxidDifferences:
    """How many differing rows come from a txid."""

    txid: int
    batch_time: int
    counts: Mapping[Difference, int]


@dataclass(frozen=True)
class Expectation:
    """One expectation and what came of it."""

    suite: str
    says: str
    severity: str
    success: bool
    observed: str = ""
    column: str | None = None


@dataclass(frozen=True)
class LateEffect:
    """Late records are no defect: how many there are, and in how many rows the result would be another with them."""

    records: int = 0
    rows_changed: int = 0


@dataclass(frozen=True)
class Reconciliation:
    """The whole answer at one frontier."""

    id: str
    pipeline: str
    generation: str
    kind: str
    """`stream and batch`, `generations`, `tables` or `scrub`."""
    frontier: int
    definition_hash: str
    started_at: int
    seconds: float
    verdict: Verdict
    comparison: Comparison
    txids: tuple[TxidDifferences, ...] = ()
    accounting: Accounting = field(default_factory=Accounting)
    late: LateEffect = field(default_factory=LateEffect)
    expectations: tuple[Expectation, ...] = ()
    scanned_in_full_at: int | None = None
    """When every row of the stream's table was last read, and up to which txid."""
    scanned_in_full_to: int = 0
    mended: int = 0
    """The newest base of a repair, or of its undoing, that the stream's side had."""
    causes: tuple[str, ...] = ()
    """Sentences that name what was found beside differing rows: a changed source file, a changed definition."""
    next_steps: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def comparison_is_equal(self) -> bool:
        """No row differs; late rows are no defect."""
        return self.comparison.equal
