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
from functools import cache
from pathlib import Path
from typing import Any

from twinstream.errors import SourceUnreadable

NOT_PLANNED = "It belongs to no txid yet; everything planned before it is unaffected."
_CHUNK = 1 << 20
_BLANK = b" \t\r"
_BOM = b"\xef\xbb\xbf"
_READING = (OSError, EOFError, zlib.error)
"""What reading a plain or a compressed file can raise."""
_NEWLINE, _OPEN, _CLOSE, _RETURN, _POINT, _MINUS, _EXPONENT = b"\n{}\r.-e"
_ODD_STARTS = b" \t\r\n[\xef"
_DIGITS = b"0123456789"
_ZONES = b"Z+-"
_ENDS = b',}] \t\r\n"'
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
    for chunk in _chunks(path):
        digest.update(chunk)
    return digest.hexdigest()


def scan_json_lines(path: Path, nested: bool, scale: int | None = None) -> Scan:
    """Counts the records of a JSON-lines file: lines with anything but white space on them.

    `scale` is the smallest number of digits after the point that a decimal column has, None where there is none.
    """
    if path.name.endswith(".gz"):
        return Scan(_count_slowly(path), fingerprint(path), plain=False)
    import xxhash

    digest = xxhash.xxh3_128()
    shape: _Shape | None = _Shape(nested, scale)
    rest = b""
    for chunk in _chunks(path):
        digest.update(chunk)
        if shape is None:
            continue
        block = rest + chunk
        cut = block.rfind(b"\n") + 1
        rest = block[cut:]
        if len(rest) > _LONGEST:
            shape = None
        elif cut:
            shape.add(block[:cut])
    if shape is not None and rest:
        shape.add(rest + b"\n")
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


class _Shape:
    """How whole lines start and end, where braces close, and how many digits numbers have after the point."""

    def __init__(self, nested: bool, scale: int | None) -> None:
        self.lines = 0
        self.fits = scale is not None
        self._nested = nested
        self._scale = scale or 0
        self._closes = 0
        self._closed_lines = 0
        self._starts_well = True
        self._balanced = True

    def add(self, block: bytes) -> None:
        """Looks at lines, each with its line feed."""
        import numpy as np

        # Jackson takes bytes with a zero in them for another encoding than UTF-8.
        self._starts_well &= b"\0" not in block
        letters = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(letters == _NEWLINE)
        self.lines += len(ends)
        firsts = letters[np.concatenate(([0], ends[:-1] + 1))]
        self._starts_well &= not _table(_ODD_STARTS)[firsts].any()
        last = letters[ends - 1]
        if (last == _RETURN).any():
            last = np.where(last == _RETURN, letters[ends - 2], last)
        self._closed_lines += int(np.count_nonzero(last == _CLOSE))
        self._closes += int(np.count_nonzero(letters == _CLOSE))
        if self._nested:
            self._balanced &= _closes_line_by_line(letters, ends)
        if self.fits:
            self.fits = _few_digits(letters, self._scale)

    def plain(self) -> bool:
        """Whether the fast JSON reader gives one record a line and overlooks nothing behind an object.

        In flat records nothing can follow an object if every closing brace ends its line; in nested ones every line
        must end with a brace, and only there may all braces be closed.
        """
        if self._nested:
            return self._starts_well and self._closed_lines == self.lines and self._balanced
        return self._starts_well and self._closed_lines == self._closes


def _closes_line_by_line(letters: Any, ends: Any) -> bool:
    """All braces are closed at the end of every line, and nowhere before it."""
    import numpy as np

    closing = letters == _CLOSE
    depths = np.cumsum((letters == _OPEN).astype(np.int64) - closing)
    return not depths[ends].any() and int(np.count_nonzero(closing & (depths == 0))) == len(ends)


def _few_digits(letters: Any, scale: int) -> bool:
    """No number has more than `scale` digits after its point, or an exponent that could give it more.

    What looks like a number in a text counts too, but not the seconds of a moment with its zone: a wrong alarm only
    costs time.
    """
    import numpy as np

    is_digit = _table(_DIGITS)
    places = np.flatnonzero(letters[: len(letters) - scale - 1] == _POINT)
    for step in range(1, scale + 2):
        places = places[is_digit[letters[places + step]]]
    places = places + scale + 1
    while len(places):
        places = places + 1
        following = letters[places]
        digits = is_digit[following]
        if (~digits & ~_table(_ZONES)[following]).any():
            return False
        places = places[digits]
    exponents = np.flatnonzero(letters == _MINUS) - 1
    exponents = exponents[(exponents > 0) & (exponents < len(letters) - 2)]
    exponents = exponents[(letters[exponents] | 0x20) == _EXPONENT]
    before, after = letters[exponents - 1], letters[exponents + 2]
    suspects = exponents[(is_digit[before] | (before == _POINT)) & is_digit[after]] + 2
    while len(suspects):
        suspects = suspects + 1
        following = letters[suspects]
        if _table(_ENDS)[following].any():
            return False
        suspects = suspects[is_digit[following]]
    return True


@cache
def _table(letters: bytes) -> Any:
    """Whether a letter is one of these, for all letters."""
    import numpy as np

    found = np.zeros(256, bool)
    found[list(letters)] = True
    return found


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
