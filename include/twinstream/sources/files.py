"""FileSource: an append-only folder of JSON-lines or Parquet files, also nested by date."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinstream.columns import parse_columns
from twinstream.errors import DefinitionError, SourceChanged, SourceUnreadable, TwinstreamError
from twinstream.sources import drift, listing
from twinstream.sources.base import REINJECTED, History, Places, Plan, Slice, is_brought_back
from twinstream.sources.listing import SETTLED_NANOS, UNSEEN, walk
from twinstream.sources.scan import NOT_PLANNED, fingerprint, sample_json, scan_json_lines, unreadable
from twinstream.sources.wide import smallest_scale
from twinstream.transaction import Range

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUFFIXES = {
    "json": (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz"),
    "parquet": (".parquet",),
}
_AT_ONCE = 64


@dataclass(frozen=True)
class FileSource:
    """Files that appear by atomic rename and never change; names that start with '.' or '_' are not there yet."""

    path: str
    format: str = "json"
    schema: str = ""
    rounding: bool = False
    """Round numbers that have more scale than their column, instead of making them dead letters."""
    drift: str = "stop"
    """`stop` at a file whose columns are not the definition's, or `ignore` what is added and take the rest as null."""

    kind = "files"
    numbered = False

    def __post_init__(self) -> None:
        if self.format not in SUFFIXES:
            raise DefinitionError(f"FileSource(format={self.format!r}) is not known.", next_step="Use json or parquet.")
        if self.drift not in ("stop", "ignore"):
            raise DefinitionError(f"FileSource(drift={self.drift!r}) is not known.", next_step="Use stop or ignore.")
        if not self.schema.strip():
            raise DefinitionError(
                "FileSource needs a schema.", next_step='Write for example schema="id string, at timestamp".'
            )
        parse_columns(self.schema)

    @cached_property
    def columns(self) -> dict[str, str]:
        return parse_columns(self.schema)

    @property
    def connections(self) -> tuple[str, ...]:
        return ()

    def canonical(self) -> dict[str, Any]:
        return {"kind": self.kind, "format": self.format, "columns": self.columns, "rounding": self.rounding}

    def plan(self, places: Places, history: History, batch_records: int, enough: int) -> Plan:
        root = places.resolve(self.path)
        known = history.known_folders()
        seen: dict[str, int] = {}
        ranges: list[Range] = []
        batch: list[dict[str, Any]] = []
        records = size = 0
        problem: TwinstreamError | None = None
        try:
            for folder in walk(root, SUFFIXES[self.format], known):
                claimed = history.claimed(listing.key(folder.path)) if folder.names else set()
                new = [f"{folder.path}/{name}" if folder.path else name for name in folder.names if name not in claimed]
                for file in self._looked_at(root, new):
                    if batch and records + file["records"] > batch_records:
                        ranges.append(_range(batch))
                        batch, records = [], 0
                        if size >= enough:
                            return Plan(tuple(ranges), tuple(seen.items()), more=True)
                    batch.append(file)
                    records += file["records"]
                    size += file["size"]
                if folder.changed is not None:
                    seen |= {name: UNSEEN for name in map(listing.key, folder.children) if name not in known}
                    seen[listing.key(folder.path)] = folder.changed
        except TwinstreamError as error:
            problem = error
        if batch:
            ranges.append(_range(batch))
        return Plan(tuple(ranges), tuple(seen.items()), problem=problem)

    def target(self, places: Places) -> Path:
        folder = places.resolve(self.path)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def waiting(self, places: Places, history: History) -> int:
        """How many files no txid has."""
        found = walk(places.resolve(self.path), SUFFIXES[self.format], history.known_folders())
        claimed = history.claimed
        return sum(len(set(folder.names) - claimed(listing.key(folder.path))) for folder in found if folder.names)

    @property
    def brought_back(self) -> FileSource:
        return self

    def range_of(self, root: Path, name: str) -> Range:
        """The range of one file that people brought back, outside the folder's own order."""
        return _range([self._look(root, name)], place=REINJECTED)

    def changes(self, places: Places, ranges: Sequence[Range]) -> dict[int, SourceChanged]:
        found: dict[int, SourceChanged] = {}
        for place, one in enumerate(ranges):
            try:
                self.verify(places, one)
            except SourceChanged as error:
                found[place] = error
        return found

    def verify(self, places: Places, range: Range) -> None:
        """Raises SourceChanged if a file of the range is not what was planned."""
        for file, path in self._paths(places, range):
            try:
                found = os.stat(path)
            except OSError as error:
                raise _changed(path, "is gone") from error
            if found.st_size != file["size"]:
                raise _changed(path, f"had {file['size']} bytes and has {found.st_size} now")
            if range.hints.get(file["path"]) != _hint(found) and _content(path) != file["fingerprint"]:
                raise _changed(path, "has other content than when it was planned")

    def remaining(self, places: Places, ranges: Sequence[Range]) -> list[Range]:
        return [self._left(places, one) for one in ranges]

    def _left(self, places: Places, range: Range) -> Range:
        there = [file for file, path in self._paths(places, range) if path.is_file()]
        return replace(
            range, payload={**range.payload, "files": [{**file, "plain": False, "fits": False} for file in there]}
        )

    def read(self, spark: SparkSession, places: Places, slices: Sequence[Slice], positions: bool = False) -> DataFrame:
        from twinstream.sources.read_files import ToRead, read_files

        found = [
            ToRead(piece, path, file["size"], bool(file["plain"]), bool(file["fits"]))
            for piece in slices
            for file, path in self._paths(places, piece.range)
        ]
        return read_files(spark, self, found, positions)

    def _paths(self, places: Places, range: Range) -> Iterator[tuple[dict[str, Any], Path]]:
        root = places.reinjected if is_brought_back(range) else places.resolve(self.path)
        for file in range.payload["files"]:
            yield file, root / file["path"]

    def _looked_at(self, root: Path, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Looks through the files a few at a time, several at once, and yields them in order."""
        with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 2)) as pool:
            for start in range(0, len(names), _AT_ONCE):
                futures = [pool.submit(self._look, root, name) for name in names[start : start + _AT_ONCE]]
                for future in futures:
                    yield future.result()

    def _look(self, root: Path, name: str) -> dict[str, Any]:
        path = root / name
        started = time.time_ns()
        before = _stat(path)
        if self.format == "parquet":
            strict = self.drift == "stop"
            records = drift.check_parquet(path, self.columns) if strict else drift.read_footer(path)[1]
            seen, plain, fits = fingerprint(path), True, True
        else:
            if self.drift == "stop":
                drift.check_json(path, self.columns, sample_json(path))
            nested = any("struct<" in kind or "map<" in kind for kind in self.columns.values())
            scan = scan_json_lines(path, nested, smallest_scale(self.columns))
            records, seen, plain, fits = scan.records, scan.fingerprint, scan.plain, scan.fits
        after = _stat(path)
        if (after.st_size, *_hint(after)) != (before.st_size, *_hint(before)):
            raise SourceUnreadable(
                f"The source file {path} is being written right now.",
                untouched=NOT_PLANNED,
                next_step="Write files under a hidden name and rename them when they are whole.",
            )
        settled = started - max(before.st_mtime_ns, before.st_ctime_ns) > SETTLED_NANOS
        return {
            "path": name, "size": before.st_size, "records": records, "fingerprint": seen, "plain": plain,
            "fits": fits, "hint": _hint(before) if settled else None,
        }  # fmt: skip


def _range(files: Sequence[dict[str, Any]], place: str = "source") -> Range:
    facts = [{name: value for name, value in file.items() if name != "hint"} for file in files]
    return Range(
        payload={"place": place, "files": facts},
        records=sum(file["records"] for file in files),
        size=sum(file["size"] for file in files),
        claims=tuple(f"{place}/{file['path']}" for file in files),
        hints={file["path"]: file["hint"] for file in files if file["hint"] is not None},
    )


def _stat(path: Path) -> os.stat_result:
    try:
        return os.stat(path)
    except OSError as error:
        raise unreadable(path, error) from error


def _content(path: Path) -> str:
    try:
        return fingerprint(path)
    except SourceUnreadable as error:
        raise _changed(path, "cannot be read any more") from error


def _hint(found: os.stat_result) -> list[int]:
    """As long as these stay the same the content need not be read again to know that it is the same.

    Kept only for files that had been left alone for a while: a change in the same tick of the clock would not show.
    """
    return [found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


def _changed(path: Path, what: str) -> SourceChanged:
    return SourceChanged(
        f"The source file {path} {what}.",
        untouched="No txid that holds it was committed from the changed file.",
        next_step="Bring back the file as it was and run the command again; if that is impossible, "
        "`twinstream discard` gives up the txid, with a reason.",
    )
