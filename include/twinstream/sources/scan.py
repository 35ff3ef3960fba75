"""One quick look through a file when it is planned: how many records, which content, how the lines look.

The count is the source's own word for what it holds, found without Spark; the fingerprint proves later that the
content is still the same.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinstream.errors import SourceUnreadable

NOT_PLANNED = "It belongs to no txid yet; everything planned before it is unaffected."
_CHUNK = 1 << 20
_BLANK = b" \t\r"
_BOM = b"\xef\xbb\xbf"
_READING = (OSError, EOFError, zlib.error)
"""What reading a plain or a compressed file can raise."""
_NEWLINE, _OPEN, _CLOSE, _RETURN = b"\n{}\r"
_ODD_STARTS = list(b" \t\r\n[\xef")
_SAMPLE_BYTES = 1 << 16
_SAMPLE_LINES = 50


@dataclass(frozen=True)
class Scan:
    """What a look through a file found."""

    records: int
    fingerprint: str
    plain: bool
    """Spark's fast JSON reader sees exactly one record a line."""


def fingerprint(path: Path) -> str:
    """Of the bytes as they are on disk."""
    import xxhash

    digest = xxhash.xxh3_128()
    for chunk in _chunks(path):
        digest.update(chunk)
    return digest.hexdigest()


def scan_json_lines(path: Path, nested: bool) -> Scan:
    """Counts the records of a JSON-lines file: lines with anything but white space on them."""
    if path.name.endswith(".gz"):
        return Scan(_count_slowly(path), fingerprint(path), plain=False)
    import xxhash

    digest = xxhash.xxh3_128()
    shape = _Shape(nested)
    for chunk in _chunks(path):
        digest.update(chunk)
        shape.add(chunk)
    if shape.plain():
        return Scan(shape.lines, digest.hexdigest(), plain=True)
    return Scan(_count_slowly(path), digest.hexdigest(), plain=False)


def sample_json(path: Path) -> list[dict[str, Any]]:
    """Some parsed records from the head and the tail of a file, to see its columns."""
    lines: list[bytes] = []
    try:
        if path.name.endswith(".gz"):
            with gzip.open(path) as file:
                lines = file.read(_SAMPLE_BYTES).split(b"\n")[:_SAMPLE_LINES]
        else:
            with path.open("rb") as file:
                head = file.read(_SAMPLE_BYTES)
                lines = head.split(b"\n")[:_SAMPLE_LINES]
                size = path.stat().st_size
                if size > _SAMPLE_BYTES:
                    file.seek(-min(_SAMPLE_BYTES, size - _SAMPLE_BYTES), 2)
                    lines += file.read().split(b"\n")[1:][-_SAMPLE_LINES:]
    except _READING as error:
        raise unreadable(path, error) from error
    return [record for line in lines if isinstance(record := _parse(line), dict)]


class _Shape:
    """How the lines of a file start and end, and where its braces close, chunk by chunk."""

    def __init__(self, nested: bool) -> None:
        self.lines = 0
        self._nested = nested
        self._depth = 0
        self._whole = 0
        self._open_lines = 0
        self._closes = 0
        self._closed_lines = 0
        self._starts_well = True
        self._before = _NEWLINE
        self._before_that = 0

    def add(self, chunk: bytes) -> None:
        import numpy as np

        letters = np.frombuffer(bytes((self._before_that, self._before)) + chunk, np.uint8)
        inside = letters[2:]
        self._closes += int(np.count_nonzero(inside == _CLOSE))
        firsts = inside[letters[1:-1] == _NEWLINE]
        self.lines += len(firsts)
        self._starts_well &= not np.isin(firsts, _ODD_STARTS).any()
        ends = np.flatnonzero(inside == _NEWLINE) + 2
        last = np.where(letters[ends - 1] == _RETURN, letters[ends - 2], letters[ends - 1])
        self._closed_lines += int(np.count_nonzero(last == _CLOSE))
        self._before_that, self._before = int(letters[-2]), int(letters[-1])
        if self._nested:
            depths = self._depth + np.cumsum((inside == _OPEN).astype(np.int64) - (inside == _CLOSE))
            self._whole += int(np.count_nonzero((inside == _CLOSE) & (depths == 0)))
            self._open_lines += int(np.count_nonzero((inside == _NEWLINE) & (depths != 0)))
            self._depth = int(depths[-1])

    def plain(self) -> bool:
        """Whether the fast JSON reader gives one record a line and overlooks nothing behind an object.

        In flat records nothing can follow an object if every closing brace ends its line; in nested ones every line
        must end with a brace, and only there may all braces be closed.
        """
        unfinished = self._before_that if self._before == _RETURN else self._before
        closed_lines = self._closed_lines + (unfinished == _CLOSE)
        if self._nested:
            balanced = self._depth == 0 and self._open_lines == 0 and self._whole == self.lines
            return self._starts_well and closed_lines == self.lines and balanced
        return self._starts_well and closed_lines == self._closes


def _count_slowly(path: Path) -> int:
    """Line by line; a line is never kept, however long it is. A byte order mark is no content, for Spark neither."""
    count, filled = 0, False
    try:
        with gzip.open(path) if path.name.endswith(".gz") else path.open("rb") as file:
            start = file.read(len(_BOM))
            chunk = b"" if start == _BOM else start
            while chunk or (chunk := file.read(_CHUNK)):
                first, *others = chunk.split(b"\n")
                filled |= bool(first.strip(_BLANK))
                for piece in others:
                    count += filled
                    filled = bool(piece.strip(_BLANK))
                chunk = b""
    except _READING as error:
        raise unreadable(path, error) from error
    return count + filled


def _parse(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _chunks(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb", buffering=0) as file:
            while chunk := file.read(_CHUNK):
                yield chunk
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: Exception) -> SourceUnreadable:
    """A file that could not be looked through when it was to be planned."""
    reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    return SourceUnreadable(
        f"The source file {path} cannot be read: {reason}.",
        untouched=NOT_PLANNED,
        next_step="Mend or remove the file, then run the command again.",
    )
