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
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

from twinstream.errors import SourceUnreadable
from twinstream.sources.json_shape import Shape

NOT_PLANNED = "It belongs to no txid yet; everything planned before it is unaffected."
_CHUNK = 1 << 19
_BLANK = b" \t\r"
_BOM = b"\xef\xbb\xbf"
_READING = (OSError, EOFError, zlib.error)
"""What reading a plain or a compressed file can raise."""
_NEWLINE = ord("\n")
_LONGEST = 16 << 20
"""A line of more bytes is left to the careful reader."""
_SAMPLE_BYTES = 1 << 16
_SAMPLE_LINES = 50


@dataclass(frozen=True)
class Scan:
    """What a look through a file found."""

    records: int
    fingerprint: str
    plain: bool
    """Spark's fast JSON reader sees exactly one record a line."""
    fits: bool = False
    """No number has more digits after its point than any decimal column has."""


def fingerprint(path: Path) -> str:
    """Of the bytes as they are on disk."""
    import xxhash

    digest = xxhash.xxh3_128()
    buffer = memoryview(bytearray(_CHUNK))
    with _opened(path) as file:
        while size := file.readinto(buffer):
            digest.update(buffer[:size])
    return digest.hexdigest()


def scan_json_lines(path: Path, nested: bool, scale: int | None = None) -> Scan:
    """Counts the records of a JSON-lines file: lines with anything but white space on them.

    `scale` is the smallest number of digits after the point that a decimal column has, None where there is none.
    """
    if path.name.endswith(".gz"):
        return Scan(_count_slowly(path), fingerprint(path), plain=False)
    import numpy as np
    import xxhash

    digest = xxhash.xxh3_128()
    most = _LONGEST + _CHUNK
    letters = np.empty(most, np.uint8)
    buffer = memoryview(letters.data)
    shape: Shape | None = Shape(nested, scale, most)
    held = 0
    with _opened(path) as file:
        while size := file.readinto(buffer[held : held + _CHUNK]):
            end = held + size
            digest.update(buffer[held:end])
            if shape is None:
                continue
            cut = shape.add(letters[:end])
            held = end - cut
            letters[:held] = letters[cut:end]
            if held > _LONGEST:
                shape, held = None, 0
    if shape is not None and held:
        letters[held] = _NEWLINE
        shape.add(letters[: held + 1])
    if shape is not None and shape.plain():
        return Scan(shape.lines, digest.hexdigest(), plain=True, fits=shape.fits)
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


@contextmanager
def _opened(path: Path) -> Iterator[FileIO]:
    try:
        with path.open("rb", buffering=0) as file:
            yield file
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
