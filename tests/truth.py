"""What the two example pipelines must give, in plain Python: no Spark, no engine, nothing but the standard library.

It takes the txid ranges as they were planned, because lateness depends on them, reads the JSON lines itself and
computes the rows that `twinstream read --format csv` must print and the accounting that must close.

    python tests/truth.py page_views --ranges ranges.json --late side > truth.csv
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

Value = Any
Record = dict[str, Value]
Columns = Mapping[str, Callable[[Value, str, str], Value]]
Micros = int

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CLASSES = ("read", "dead", "duplicate", "filtered", "late", "emitted", "discarded")

WHOLE = re.compile(r"-?[0-9]+")
SIMPLE_DECIMAL = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?")
DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
TIMESTAMP = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?", flags=re.ASCII
)


@dataclass(frozen=True)
class Truth:
    """Rows as text, sorted; the accounting and the watermark after each txid."""

    rows: list[tuple[str, ...]]
    header: tuple[str, ...]
    per_txid: dict[int, dict[str, int]]
    watermarks: dict[int, str | None]


class Dead(Exception):
    """The record is a dead letter."""


class Number(str):
    """A JSON number as it was written: a text column must show these very characters."""

    __slots__ = ()


def lines(files: Iterable[str | Path]) -> Iterator[str]:
    """Every line that is not blank; bytes that are not UTF-8 survive as lone surrogates, for `parse` to refuse."""
    for file in files:
        with open(file, encoding="utf-8", errors="surrogateescape") as opened:
            for line in opened:
                stripped = line.strip(" \t\r\n")
                if stripped:
                    yield stripped


_decoder = json.JSONDecoder(parse_float=Number, parse_int=Number, parse_constant=Number)


def parse(line: str) -> dict[str, Value]:
    """One JSON object, and nothing but it, or Dead."""
    try:
        if not line.isascii():
            line.encode()
        found, end = _decoder.raw_decode(line)
    except (ValueError, RecursionError):
        raise Dead("not JSON") from None
    if type(found) is not dict or end != len(line):
        raise Dead("not an object")
    return found


def as_string(value: Value, line: str, name: str) -> str:
    """Text as it is; anything else as the text it was written with."""
    if type(value) is str:
        return value
    if type(value) is Number:
        return str(value)
    if type(value) is bool:
        return "true" if value else "false"
    return written(line, name)


def written(line: str, name: str) -> str:
    """The source text of a member's value; the last one counts if the name is repeated."""
    space = re.compile(r"[ \t\r\n]*")

    def skip(at: int) -> int:
        found = space.match(line, at)
        assert found is not None
        return found.end()

    last = ""
    at = skip(1)
    while line[at] == '"':
        key, at = _decoder.raw_decode(line, at)
        begin = skip(skip(at) + 1)
        _, at = _decoder.raw_decode(line, begin)
        if key == name:
            last = line[begin:at]
        at = skip(skip(at) + 1) if line[skip(at)] == "," else skip(at)
    return last


def as_int(value: Value, line: str, name: str) -> int:
    """A whole number written as one (1.0 and "1" are not), in 32 bits."""
    if type(value) is not Number or not WHOLE.fullmatch(value) or len(value) > 12:
        raise Dead(f"{name} is no int")
    number = int(value)
    if not -(2**31) <= number < 2**31:
        raise Dead(f"{name} overflows")
    return number


def as_decimal(precision: int, scale: int) -> Callable[[Value, str, str], int]:
    """The value in units of the last digit; exact, or Dead: nothing is rounded."""

    @lru_cache(maxsize=100_000)
    def units_of(text: str) -> int:
        simple = SIMPLE_DECIMAL.fullmatch(text)
        if simple is not None and len(text) <= 40:
            sign, whole, fraction = simple.groups()
            digits = (fraction or "").rstrip("0")
            if len(digits) > scale:
                raise Dead("too much scale")
            units = int(whole + digits.ljust(scale, "0"))
            units = -units if sign else units
        else:
            units = exponent_form(text, scale)
        if abs(units) >= 10**precision:
            raise Dead("overflow")
        return units

    def convert(value: Value, line: str, name: str) -> int:
        if type(value) is not Number and type(value) is not str:
            raise Dead(f"{name} is no number")
        return units_of(value)

    return convert


def exponent_form(text: str, scale: int) -> int:
    """The rare spellings: 1e3, +1.5, .5, or very many digits."""
    if not DECIMAL.fullmatch(text):
        raise Dead("no number")
    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    significant = "".join(map(str, digits)).lstrip("0")
    stripped = significant.rstrip("0")
    if not stripped:
        return 0
    shift = exponent + len(significant) - len(stripped) + scale
    if shift < 0:
        raise Dead("too much scale")
    if shift > 80:
        raise Dead("overflow")
    units = int(stripped) * 10**shift
    return -units if sign else units


def as_timestamp(value: Value, line: str, name: str) -> Micros:
    """ISO-8601, UTC where no zone is given, as microseconds since 1970."""
    if type(value) is not str or not TIMESTAMP.fullmatch(value):
        raise Dead(f"{name} is no timestamp")
    try:
        moment = datetime.fromisoformat(value)
        return to_micros(moment)
    except (ValueError, OverflowError):
        raise Dead(f"{name} is no timestamp") from None


def to_micros(moment: datetime) -> Micros:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    apart = aware - EPOCH
    return (apart.days * 86_400 + apart.seconds) * SECOND + apart.microseconds


def iso(micros: Micros) -> str:
    """UTC with a Z; microseconds only where there are some."""
    seconds, rest = divmod(micros, SECOND)
    return f"{iso_second(seconds)}.{rest:06d}Z" if rest else f"{iso_second(seconds)}Z"


@lru_cache(maxsize=100_000)
def iso_second(seconds: int) -> str:
    return (EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()


@lru_cache(maxsize=100_000)
def plain(units: int | None, scale: int) -> str:
    """A decimal with all digits of its scale, empty for null."""
    if units is None:
        return ""
    digits = str(abs(units)).rjust(scale + 1, "0")
    return f"{'-' if units < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


class PageViews:
    """Views and spend by page and minute; late when the minute was closed."""

    columns: ClassVar[Columns] = {
        "event_id": as_string,
        "page": as_string,
        "amount": as_decimal(12, 2),
        "at": as_timestamp,
    }
    record_id, event_time = "event_id", "at"
    delay, max_future = 10 * MINUTE, HOUR
    header = ("page", "window_start", "window_end", "views", "spend")

    def __init__(self) -> None:
        self._groups: dict[tuple[str, Micros], list[int | None]] = {}

    def keeps(self, record: Record) -> bool:
        return record["page"] is not None

    def is_late(self, record: Record, watermark: Micros) -> bool:
        return self._window(record) + MINUTE <= watermark

    def emit(self, record: Record) -> None:
        group = self._groups.setdefault((record["page"], self._window(record)), [0, None])
        group[0] = (group[0] or 0) + 1
        if record["amount"] is not None:
            group[1] = (group[1] or 0) + record["amount"]

    def rows(self) -> list[tuple[str, ...]]:
        return sorted(
            (page, iso(start), iso(start + MINUTE), str(views), plain(spend, 2))
            for (page, start), (views, spend) in self._groups.items()
        )

    def _window(self, record: Record) -> Micros:
        at: Micros = record["at"]
        return at - at % MINUTE


class Orders:
    """Cleaned orders, one row each; late when older than the watermark."""

    columns: ClassVar[Columns] = {
        "order_id": as_string,
        "customer": as_string,
        "country": as_string,
        "status": as_string,
        "quantity": as_int,
        "price": as_decimal(10, 2),
        "placed_at": as_timestamp,
    }
    record_id, event_time = "order_id", "placed_at"
    delay, max_future = HOUR, HOUR
    header = ("order_id", "customer", "country", "status", "quantity", "price", "total", "placed_at")

    def __init__(self) -> None:
        self._rows: list[tuple[str, ...]] = []

    def keeps(self, record: Record) -> bool:
        """SQL's three values: a condition that is null keeps nothing."""
        status, quantity = record["status"], record["quantity"]
        return status is not None and status != "test" and quantity is not None and quantity > 0

    def is_late(self, record: Record, watermark: Micros) -> bool:
        placed_at: Micros = record["placed_at"]
        return placed_at < watermark

    def emit(self, record: Record) -> None:
        customer, country, price = record["customer"], record["country"], record["price"]
        self._rows.append(
            (
                record["order_id"],
                "" if customer is None else customer.strip(" ").lower(),
                "" if country is None else country.upper(),
                record["status"],
                str(record["quantity"]),
                plain(price, 2),
                plain(None if price is None else price * record["quantity"], 2),
                iso(record["placed_at"]),
            )
        )

    def rows(self) -> list[tuple[str, ...]]:
        return sorted(self._rows)


PIPELINES: dict[str, type[PageViews] | type[Orders]] = {"page_views": PageViews, "orders": Orders}


def read(pipeline: PageViews | Orders, line: str, batch_time: Micros) -> Record:
    """The record of a line with every column converted, or Dead."""
    found = parse(line)
    record: Record = {}
    for name, convert in pipeline.columns.items():
        value = found.get(name)
        record[name] = None if value is None else convert(value, line, name)
    if record[pipeline.record_id] is None:
        raise Dead("no record id")
    if record[pipeline.event_time] is None:
        raise Dead("no event time")
    if record[pipeline.event_time] > batch_time + pipeline.max_future:
        raise Dead("far in the future")
    return record


def truth(
    pipeline: PageViews | Orders, ranges: Sequence[Mapping[str, Any]], late: str, horizon: Micros | None = None
) -> Truth:
    """Go through the txids in order; the watermark of T-1 judges T, then T moves it.

    With a horizon every record is compared with the event times of all earlier ones of its id.
    """
    if late not in ("keep", "drop", "side"):
        raise ValueError(f"late is keep, drop or side, not {late}")
    watermark: Micros | None = None
    per_txid: dict[int, dict[str, int]] = {}
    watermarks: dict[int, str | None] = {}
    times: dict[str, set[Micros]] = {}
    for range_ in ranges:
        txid: int = range_["txid"]
        if txid <= max(per_txid, default=0):
            raise ValueError(f"txid {txid} is out of order")
        counts = per_txid[txid] = dict.fromkeys(CLASSES, 0)
        batch_time = to_micros(datetime.fromisoformat(range_["batch_time"]))
        judge = None if late == "keep" or range_.get("exempt") else watermark
        highest: Micros | None = None
        for line in lines(range_["files"]):
            counts["read"] += 1
            try:
                record = read(pipeline, line, batch_time)
            except Dead:
                counts["dead"] += 1
                continue
            moment: Micros = record[pipeline.event_time]
            if highest is None or moment > highest:
                highest = moment
            if range_.get("discarded"):
                counts["discarded"] += 1
                continue
            is_late = judge is not None and pipeline.is_late(record, judge)
            if horizon is not None:
                seen = times.setdefault(record[pipeline.record_id], set())
                repeated = any(abs(moment - other) <= horizon for other in seen)
                if not is_late:
                    seen.add(moment)
                if repeated:
                    counts["duplicate"] += 1
                    continue
            if not pipeline.keeps(record):
                counts["filtered"] += 1
            elif is_late:
                counts["late"] += 1
            else:
                pipeline.emit(record)
                counts["emitted"] += 1
        if highest is not None:
            moved = highest - pipeline.delay
            watermark = moved if watermark is None else max(watermark, moved)
        watermarks[txid] = None if watermark is None else iso(watermark)
    return Truth(pipeline.rows(), pipeline.header, per_txid, watermarks)


def truth_page_views(ranges: Sequence[Mapping[str, Any]], late: str, horizon: Micros | None = None) -> Truth:
    """The truth of include/pipelines/page_views.py."""
    return truth(PageViews(), ranges, late, horizon)


def truth_orders(ranges: Sequence[Mapping[str, Any]], late: str, horizon: Micros | None = None) -> Truth:
    """The truth of include/pipelines/orders.py."""
    return truth(Orders(), ranges, late, horizon)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the rows as CSV; with --accounting also write the counts and watermarks of each txid as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipeline", choices=sorted(PIPELINES))
    parser.add_argument("--ranges", type=Path, required=True, help="JSON list of txid ranges")
    parser.add_argument("--late", choices=["keep", "drop", "side"], required=True)
    parser.add_argument("--horizon", type=int, help="deduplicate within so many microseconds")
    parser.add_argument("--accounting", type=Path, help="where to write counts and watermarks by txid")
    given = parser.parse_args(arguments)
    ranges = json.loads(given.ranges.read_text(encoding="utf-8"))
    result = truth(PIPELINES[given.pipeline](), ranges, given.late, given.horizon)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(result.header)
    writer.writerows(result.rows)
    if given.accounting:
        counts = {"per_txid": result.per_txid, "watermarks": result.watermarks}
        given.accounting.write_text(json.dumps(counts, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
