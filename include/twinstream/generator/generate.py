"""Generate events into a folder: check what was asked for, then stream blocks into files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Literal

from twinstream.errors import DefinitionError, SettingsError
from twinstream.generator.files import Files
from twinstream.generator.forms import Form
from twinstream.generator.identity import RecordIds
from twinstream.generator.json_form import JsonForm
from twinstream.generator.kinds import Kind, parse_kind
from twinstream.generator.parquet_form import ParquetForm
from twinstream.generator.stream import Shares, Stream
from twinstream.generator.times import Clock, day_of, find_time_column
from twinstream.generator.topic import TopicWriter


@dataclass(frozen=True)
class Generated:
    """What was written: `events` counts every record, the duplicates, late and poison ones among them."""

    files: tuple[Path, ...]
    events: int
    duplicates: int
    late: int
    poison: int
    bytes: int


def generate(
    columns: Mapping[str, str],
    folder: Path | TopicWriter,
    *,
    record_id: str,
    event_time: str,
    events: int,
    seed: int,
    duplicates: float = 0,
    late: float = 0,
    poison: float = 0,
    events_per_file: int = 10_000,
    start: datetime | None = None,
    rate: float = 100.0,
    lateness: timedelta = timedelta(minutes=30),
    nested: bool = False,
    format: Literal["json", "parquet"] = "json",
    progress: Callable[[int], None] | None = None,
) -> Generated:
    """Write `events` records of the given columns (name to Spark type) into `folder`, or to a topic.

    One seed and one `start` give the same bytes. Event time grows from `start` by `rate` records a second; by default
    it ends a minute before now, so that only deliberate poison lies in the future. Shares are fractions of all
    records. `progress` is told the number of records written so far. Memory does not grow with `events`.
    """
    _check(events, duplicates, late, poison, events_per_file, rate, lateness)
    if format not in ("json", "parquet"):
        raise SettingsError(f"Cannot generate {format} files.", next_step="Ask for json or parquet.")
    kinds = {name: parse_kind(name, text) for name, text in columns.items()}
    identity = _find_record_id(record_id, kinds)
    time = find_time_column(event_time, {name: kind for name, kind in kinds.items() if name != identity})
    begin = _begin(start, events, rate)
    stamp = begin.strftime("%Y%m%dT%H%M%S") + (f".{begin.microsecond:06d}Z" if begin.microsecond else "Z")
    form: Form = ParquetForm(kinds, identity, time) if format == "parquet" else JsonForm(kinds, identity, time)
    clock = Clock(begin, rate, Random(f"{seed}/clock"))
    stream = Stream(
        kinds,
        form,
        RecordIds(identity, kinds[identity], seed=seed, start=stamp, events=events),
        clock,
        record_id=identity,
        time=time,
        shares=Shares(duplicates, late, poison, lateness // timedelta(microseconds=1)),
        seed=seed,
        start=begin,
    )

    def path_of(number: int) -> Path:
        assert isinstance(folder, Path)
        name = f"events-{stamp}-{seed}-{number + 1:06d}.{form.suffix}"
        return folder / day_of(clock.nominal(number * events_per_file)).isoformat() / name if nested else folder / name

    target: Files | TopicWriter = Files(form, path_of, events_per_file) if isinstance(folder, Path) else folder
    if isinstance(target, Files):
        target.refuse_existing(-(-events // events_per_file))
    written = repeated = belated = poisoned = 0
    with target:
        for block in stream.blocks(events):
            target.write(block.records)
            written += len(block.records)
            repeated += block.duplicates
            belated += block.late
            poisoned += block.poison
            if progress is not None:
                progress(written)
    files = tuple(target.finished) if isinstance(target, Files) else ()
    return Generated(files, written, repeated, belated, poisoned, target.bytes)


def _check(
    events: int,
    duplicates: float,
    late: float,
    poison: float,
    events_per_file: int,
    rate: float,
    lateness: timedelta,
) -> None:
    shares = {"duplicates": duplicates, "late": late, "poison": poison}
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise SettingsError(f"The share of {name} is {share}; it must be between 0 and 1.")
    if sum(shares.values()) > 1:
        raise SettingsError("The shares of duplicates, late and poison records are more than 1 together.")
    if events < 0 or events_per_file < 1 or not rate > 0 or lateness < timedelta(0):
        raise SettingsError(
            f"Cannot generate {events} events, {events_per_file} a file, {rate} a second, late by {lateness}.",
            next_step="Give positive numbers.",
        )


def _find_record_id(record_id: str, kinds: Mapping[str, Kind]) -> str:
    for name in kinds:
        if name.lower() == record_id.lower():
            return name
    raise DefinitionError(
        f"The generator needs the record id {record_id!r} to be a column; there are {', '.join(kinds)}.",
        next_step="Name one of the columns as record id.",
    )


def _begin(start: datetime | None, events: int, rate: float) -> datetime:
    """In UTC; the default has milliseconds, so that two calls a moment apart do not meet in their file names."""
    if start is not None:
        return start.astimezone(UTC) if start.tzinfo else start.replace(tzinfo=UTC)
    now = datetime.now(UTC)
    begin = now - timedelta(seconds=events / rate) - timedelta(minutes=1)
    return begin.replace(microsecond=begin.microsecond // 1_000 * 1_000)
