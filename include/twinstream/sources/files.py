"""FileSource: an append-only folder of JSON-lines or Parquet files, also nested by date."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinstream.columns import parse_columns
from twinstream.errors import DefinitionError, SourceChanged, TwinstreamError
from twinstream.sources import drift
from twinstream.sources.base import History, Places, Plan, Slice
from twinstream.sources.listing import walk
from twinstream.sources.scan import fingerprint, sample_json, scan_json_lines
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

    def canonical(self) -> dict[str, Any]:
        return {"kind": self.kind, "format": self.format, "columns": self.columns, "rounding": self.rounding}

    def plan(self, places: Places, history: History, batch_records: int, enough: int) -> Plan:
        root = places.resolve(self.path)
        ranges: list[Range] = []
        folders: list[tuple[str, int]] = []
        batch: list[dict[str, Any]] = []
        size = 0
        try:
            for folder in walk(root, SUFFIXES[self.format], history.known_folders()):
                prefix = f"source/{folder.path}" if folder.path else "source"
                claimed = history.claimed(prefix)
                new = [f"{folder.path}/{name}" if folder.path else name for name in folder.names if name not in claimed]
                for file in self._looked_at(root, new):
                    if batch and sum(f["records"] for f in batch) + file["records"] > batch_records:
                        ranges.append(_range(batch))
                        batch = []
                        if size >= enough:
                            return Plan(tuple(ranges), tuple(folders), more=True)
                    batch.append(file)
                    size += file["size"]
                if folder.modified is not None:
                    folders.append((prefix, folder.modified))
        except TwinstreamError as error:
            return Plan((*ranges, _range(batch)) if batch else tuple(ranges), tuple(folders), problem=error)
        return Plan((*ranges, _range(batch)) if batch else tuple(ranges), tuple(folders))

    def range_of(self, root: Path, name: str, *, reinjected: bool = False) -> Range:
        """The range of one file outside the folder's own order (dead letters that are brought back)."""
        return _range([self._look(root, name)], place="reinjected" if reinjected else "source")

    def verify(self, places: Places, range: Range) -> None:
        for file, path in self._paths(places, range):
            try:
                found = os.stat(path)
            except OSError as error:
                raise _changed(path, "is gone") from error
            if found.st_size != file["size"]:
                raise _changed(path, f"had {file['size']} bytes and has {found.st_size} now")
            known = range.hints.get(file["path"])
            if known != _hint(found) and fingerprint(path) != file["fingerprint"]:
                raise _changed(path, "has other content than when it was planned")

    def read(self, spark: SparkSession, places: Places, slices: Sequence[Slice]) -> DataFrame:
        from twinstream.sources.read_files import read_files

        found = [
            (piece, path, bool(file["plain"])) for piece in slices for file, path in self._paths(places, piece.range)
        ]
        return read_files(spark, self, found)

    def _paths(self, places: Places, range: Range) -> Iterator[tuple[dict[str, Any], Path]]:
        root = places.reinjected if range.payload["place"] == "reinjected" else places.resolve(self.path)
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
        try:
            before = os.stat(path)
        except OSError as error:
            raise _changed(path, f"cannot be read ({error.strerror})") from error
        if self.format == "parquet":
            strict = self.drift == "stop"
            records = drift.check_parquet(path, self.columns) if strict else drift.read_footer(path)[1]
            seen, plain = fingerprint(path), True
        else:
            if self.drift == "stop":
                drift.check_json(path, self.columns, sample_json(path))
            nested = any("struct<" in kind or "map<" in kind for kind in self.columns.values())
            scan = scan_json_lines(path, nested)
            records, seen, plain = scan.records, scan.fingerprint, scan.plain
        return {
            "path": name, "size": before.st_size, "records": records, "fingerprint": seen, "plain": plain,
            "hint": _hint(before),
        }  # fmt: skip


def _range(files: Sequence[dict[str, Any]], place: str = "source") -> Range:
    facts = [{name: value for name, value in file.items() if name != "hint"} for file in files]
    return Range(
        payload={"place": place, "files": facts},
        records=sum(file["records"] for file in files),
        size=sum(file["size"] for file in files),
        claims=tuple(f"{place}/{file['path']}" for file in files),
        hints={file["path"]: file["hint"] for file in files},
    )


def _hint(found: os.stat_result) -> list[int]:
    """As long as these stay the same the content need not be read again to know that it is the same."""
    return [found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


def _changed(path: Path, what: str) -> SourceChanged:
    return SourceChanged(
        f"The source file {path} {what}.",
        untouched="No txid that holds it was committed from the changed file.",
        next_step="Bring back the file as it was and run the command again; if that is impossible, "
        "`twinstream discard` gives up the txid, with a reason.",
    )
