"""What a comparison counted: the one small table that is validated, so that neither side is scanned again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from twinstream.reconcile.result import Difference
from twinstream.transaction import CLASSES, Accounting


@dataclass(frozen=True)
class SideFacts:
    """What was counted on one side while it was scanned; None where the definition promises nothing about it."""

    rows: int
    duplicate_keys: int | None = None
    """Keys that more than one row has."""
    null_keys: int | None = None
    """Rows with null in a column of the key."""
    below_zero: Mapping[str, int] = field(default_factory=dict)
    """For each measure that may not be negative: the rows in which it is."""


@dataclass(frozen=True)
class Facts:
    """Everything that the suites of Twinstream look at."""

    pipeline: str
    frontier: int
    stream: SideFacts
    batch: SideFacts
    differences: Mapping[Difference, int] = field(default_factory=dict)
    accounting: Accounting = field(default_factory=Accounting)
    records_in_source: int = 0
    """What the source says that the ranges of the committed txids hold."""
    txids_committed: int = 0
    """How many of the txids up to the frontier are committed."""
    txids_open: int = 0
    """Committed txids whose accounting does not close in count, sum and XOR."""

    def row(self) -> dict[str, int]:
        """All facts as one row, a column each."""
        counted = {f"records_{name}": getattr(self.accounting, name).count for name in CLASSES}
        return {
            "stream_rows": self.stream.rows,
            "batch_rows": self.batch.rows,
            "rows_apart": abs(self.stream.rows - self.batch.rows),
            **{difference_column(kind): self.differences.get(kind, 0) for kind in Difference},
            **_side("stream", self.stream),
            **_side("batch", self.batch),
            "records_in_source": self.records_in_source,
            **counted,
            "records_unaccounted": abs(self.records_in_source - self.accounting.read.count),
            "txids_committed": self.txids_committed,
            "txids_missing": abs(self.frontier - self.txids_committed),
            "txids_open": self.txids_open,
        }


def difference_column(kind: Difference) -> str:
    """The fact that counts the differing rows of one kind."""
    return "rows_" + kind.value.replace(" ", "_").replace("-", "_")


def below_zero_column(side: str, measure: str) -> str:
    """The fact that counts the rows in which a measure is negative."""
    return f"{side}_{measure}_below_zero"


def _side(name: str, side: SideFacts) -> dict[str, int]:
    asked = {f"{name}_duplicate_keys": side.duplicate_keys, f"{name}_null_keys": side.null_keys}
    found = {column: count for column, count in asked.items() if count is not None}
    return found | {below_zero_column(name, measure): count for measure, count in side.below_zero.items()}
