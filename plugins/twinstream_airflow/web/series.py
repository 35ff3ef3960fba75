"""Throughput, lag, watermark and late share over a window of txids, in few enough points to be drawn and read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from twinstream.ledger.windows import TxidRow
from twinstream_airflow.web.models import Point, Series
from twinstream_airflow.web.times import between

MOST_POINTS = 80
Measure = Callable[[Sequence[TxidRow]], float | None]


def series(rows: Sequence[TxidRow]) -> list[Series]:
    """All measures, over the committed txids of the window."""
    done = [row for row in rows if row.committed_at is not None]
    many = min(len(done), MOST_POINTS)
    parts = [done[len(done) * n // many : len(done) * (n + 1) // many] for n in range(many)]
    groups = Counter((row.started_at, row.committed_at) for row in done)
    measures: list[tuple[str, str, str, Measure]] = [
        ("throughput", "Throughput", "records/s", _throughput(groups)),
        ("lag", "Lag: from planned to committed", "s", _lag),
        ("watermark", "Watermark behind the commit", "s", _behind),
        ("late", "Late share", "%", _late),
    ]
    return [
        Series(name=name, label=label, unit=unit,
               points=[Point(first=part[0].txid, last=part[-1].txid, value=measure(part)) for part in parts])
        for name, label, unit, measure in measures
    ]  # fmt: skip


def _throughput(groups: Counter[tuple[int | None, int | None]]) -> Measure:
    """Records over the time that was worked on them; txids of one group share its time."""

    def measure(part: Sequence[TxidRow]) -> float | None:
        spans = [(row.started_at, row.committed_at) for row in part]
        seconds = sum((between(*one) or 0.0) / groups[one] for one in spans)
        return round(sum(row.records for row in part) / seconds, 1) if seconds else None

    return measure


def _lag(part: Sequence[TxidRow]) -> float | None:
    found = [between(row.batch_time, row.committed_at) for row in part]
    return max((one for one in found if one is not None), default=None)


def _behind(part: Sequence[TxidRow]) -> float | None:
    last = part[-1]
    return between(last.watermark, last.committed_at)


def _late(part: Sequence[TxidRow]) -> float | None:
    read = sum(row.records for row in part)
    return round(100 * sum(row.late or 0 for row in part) / read, 3) if read else None
