"""What staged files hold, per txid and class, read back without a Spark job: a small group has no time for one.

Only a few numbers of each row are read, and of large files a piece at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinstream.runtime.tallies import TALLY
from twinstream.transaction import Tally

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_AT_ONCE = 1 << 20
_CLASSES = 16
_NEVER = (1 << 63) - 1
_LOW = 0xFFFFFFFF
_NOTHING = Tally()


@dataclass(frozen=True)
class Closing:
    """By which column a stored row can be late, and how long after that moment, in microseconds."""

    column: str
    after: int


@dataclass(frozen=True)
class Seen:
    """What the rows of one txid and class add up to."""

    tally: Tally = _NOTHING
    rows: int = 0
    highest: int | None = None
    closing: int | None = None
    digest: Tally = _NOTHING

    def __add__(self, other: Seen) -> Seen:
        return Seen(
            self.tally + other.tally,
            self.rows + other.rows,
            max((one for one in (self.highest, other.highest) if one is not None), default=None),
            min((one for one in (self.closing, other.closing) if one is not None), default=None),
            self.digest + other.digest,
        )


def summarised(files: Iterable[Path], by_record: bool, closing: Closing | None) -> dict[tuple[int, int], Seen]:
    """Every txid and class in the files. Tallies are of the records themselves, or of rows that hold some already."""
    tallied = ["_hash", "_first", "_event_time"] if by_record else [*TALLY, "_highest"]
    names = ["_txid", "_class", "_digest", *tallied, *([closing.column] if closing else [])]
    found: dict[tuple[int, int], Seen] = {}
    for rows in _pieces(files, names):
        for key, seen in _sums(rows, rows.column("_class"), closing, "_event_time" if by_record else "_highest"):
            found[key] = found[key] + seen if key in found else seen
    return found


def closed(
    files: Iterable[Path], by_record: bool, closing: Closing, limits: dict[int, int]
) -> dict[int, tuple[Tally, int]]:
    """Of the rows that are closed at the limit of their txid: their records' tally, and how many rows they are."""
    import numpy as np
    import pyarrow as pa

    names = ["_txid", closing.column, *(["_hash", "_first"] if by_record else TALLY)]
    found: dict[int, tuple[Tally, int]] = {}
    for rows in _pieces(files, names):
        txids, places = np.unique(_numbers(rows.column("_txid")), return_inverse=True)
        limit = np.array([limits.get(txid, -_NEVER) for txid in txids.tolist()], dtype=np.int64)[places]
        closes = _numbers(rows.column(closing.column), _NEVER - closing.after) + closing.after
        kept = rows.filter(pa.array(closes <= limit))
        if kept.num_rows:
            for (txid, _), seen in _sums(kept, None, None, None):
                before = found.get(txid, (_NOTHING, 0))
                found[txid] = (before[0] + seen.tally, before[1] + seen.rows)
    return found


def _pieces(files: Iterable[Path], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    for path in files:
        with pq.ParquetFile(path) as file:
            there = set(file.schema_arrow.names)
            yield from file.iter_batches(_AT_ONCE, columns=[name for name in dict.fromkeys(names) if name in there])


def _sums(
    rows: pa.RecordBatch, classes: Any, closing: Closing | None, moment: str | None
) -> Iterator[tuple[tuple[int, int], Seen]]:
    """The sums of a piece, by txid and class."""
    import numpy as np

    keys = _numbers(rows.column("_txid")) * _CLASSES + (0 if classes is None else _numbers(classes))
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))

    def group(function: Any, values: np.ndarray) -> list[int]:
        found: list[int] = function.reduceat(values[order], starts).tolist()
        return found

    def column(name: str, missing: int = 0) -> np.ndarray:
        return _numbers(rows.column(name), missing) if name in rows.schema.names else np.full(rows.num_rows, missing)

    if "_hash" in rows.schema.names:
        first = np.asarray(rows.column("_first").fill_null(False)).astype(np.int64)
        hashes = column("_hash") * first
        tallies = [first, hashes & _LOW, hashes >> 32, hashes]
    else:
        tallies = [column(name) for name in TALLY]
    sums = [group(np.add, values) for values in tallies[:3]] + [group(np.bitwise_xor, tallies[3])]
    counts = np.diff(np.append(starts, rows.num_rows)).tolist()
    digests = column("_digest")
    of_digests = [group(np.add, digests & _LOW), group(np.add, digests >> 32), group(np.bitwise_xor, digests)]
    highest = group(np.maximum, column(moment, -_NEVER)) if moment else [-_NEVER] * len(counts)
    after = closing.after if closing else 0
    earliest = group(np.minimum, column(closing.column, _NEVER)) if closing else [_NEVER] * len(counts)
    for place, key in enumerate(keys[starts].tolist()):
        yield (
            divmod(key, _CLASSES),
            Seen(
                tally=Tally.of_halves(*(values[place] for values in sums)),
                rows=counts[place],
                highest=None if highest[place] == -_NEVER else highest[place],
                closing=None if earliest[place] == _NEVER else earliest[place] + after,
                digest=Tally.of_halves(counts[place], *(values[place] for values in of_digests)),
            ),
        )


def _numbers(column: pa.Array, missing: int = 0) -> np.ndarray:
    """Whole numbers, moments as microseconds, with something in place of nulls."""
    import numpy as np
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz))
    column = column.cast(pa.int64())
    return np.asarray(column.fill_null(missing) if column.null_count else column)
