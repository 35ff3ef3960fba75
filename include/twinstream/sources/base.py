"""What a source must do: say what is new as immutable ranges, and read a range exactly as it was planned.

Files, Kafka partitions with offsets and Delta versions all fit: a range's payload is the source's own business; the
ledger only keeps it, compares its digest and guards the names it claims.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from twinstream.errors import SourceChanged, TwinstreamError
from twinstream.transaction import Range

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from twinstream.generator.topic import TopicWriter
    from twinstream.sources.files import FileSource


REINJECTED = "reinjected"
"""The place, in a range's payload, of records that people brought back."""


def is_brought_back(range: Range) -> bool:
    """Whether people brought these records back."""
    return range.payload.get("place") == REINJECTED


class History(Protocol):
    """What the ledger knows of a generation's plan, as far as a source may ask."""

    def last(self) -> Range | None:
        """The newest planned range that came from the source itself, not from people who reinjected records."""

    def known_folders(self) -> Mapping[str, int]:
        """Folders whose content is all planned, with the time of the last change they had then."""

    def claimed(self, folder: str) -> set[str]:
        """Names in a folder that belong to a txid."""


@dataclass(frozen=True)
class Plan:
    """What a source found: ranges in order, and what stopped it, if anything did."""

    ranges: tuple[Range, ...]
    seen_folders: tuple[tuple[str, int], ...] = ()
    problem: TwinstreamError | None = None
    """Raised once everything before it is committed."""
    more: bool = False
    """There is more to plan than was asked for."""
    warnings: tuple[str, ...] = ()
    """What will go wrong before long if nobody does anything."""


@dataclass(frozen=True)
class Slice:
    """One txid's range as the reader needs it."""

    txid: int
    range: Range
    batch_time: int
    discarded: bool = False
    late_before: int | None = None
    """Only where lateness must be decided while processing: rows with an event time below it are late."""

    def facts(self) -> dict[str, object]:
        """What every record of the slice carries, as columns `_txid`, `_batch_micros`, `_discarded`, `_late_before`."""
        return {
            "_txid": self.txid,
            "_batch_micros": self.batch_time,
            "_discarded": self.discarded,
            "_late_before": self.late_before,
        }


POSITION = "struct<place:string,part:bigint,number:bigint>"
"""Topic, partition and offset; or nothing, where the block is if all files were one in the order of their names, and a
number that grows from line to line. No two records of a reading have the same. Of two readings only the order is the
same, the numbers need not be."""

FACTS = "_txid:bigint,_batch_micros:bigint,_discarded:boolean,_late_before:bigint"


@dataclass(frozen=True)
class Places:
    """What the names in a definition stand for: folders for relative paths, addresses for connections."""

    home: Path
    reinjected: Path = field(default=Path())
    connections: Mapping[str, str] = field(default_factory=dict, repr=False)
    """How to reach brokers, by the names that definitions give them; they may hold passwords."""

    def resolve(self, path: str) -> Path:
        return (self.home / Path(path).expanduser()).absolute()


class Source(Protocol):
    """A replayable source of records."""

    kind: str
    numbered: bool
    """Whether records have numbers of their own. Elsewhere a part (see POSITION) is read by one task, in its order."""

    @property
    def columns(self) -> dict[str, str]:
        """Name and type of each column."""

    @property
    def connections(self) -> tuple[str, ...]:
        """Names of the connections that it needs."""

    def canonical(self) -> dict[str, Any]:
        """All that changes results, for the definition's hash."""

    def plan(self, places: Places, history: History, batch_records: int, enough: int) -> Plan:
        """New ranges of about `batch_records` records each, until they hold `enough` bytes."""

    def target(self, places: Places) -> Path | TopicWriter:
        """Where the generator puts events."""

    def waiting(self, places: Places, history: History) -> int:
        """How much is there that no txid has, by looking at names only; what counts as one is the source's business."""

    @property
    def brought_back(self) -> FileSource:
        """How files of records that people bring back are read."""

    def changes(self, places: Places, ranges: Sequence[Range]) -> Mapping[int, SourceChanged]:
        """Which of the ranges, by their place in the sequence, do not hold any more what was planned."""

    def remaining(self, places: Places, ranges: Sequence[Range]) -> list[Range]:
        """What is left of ranges that have changed, to see what the source says now."""

    def read(self, spark: SparkSession, places: Places, slices: Sequence[Slice], positions: bool = False) -> DataFrame:
        """The records of the slices: columns, the slice's facts, `_file`, `_raw` (what did not parse), `_misfit`.

        `_misfit` names the first column whose value does not fit its type although the record parses. With `positions`
        also `_position` (see POSITION), by which the records of a txid are in the source's order.
        """
