"""Files that appear whole: written under a hidden name, then given their own; nothing is ever overwritten."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from twinstream.errors import DiskFull, Refused, SettingsError, TwinstreamError
from twinstream.generator.forms import Form, Record, Writer


class Files:
    """Cuts the stream into files of `events_per_file` records; `path_of(n)` says where the n-th (from 0) belongs."""

    def __init__(self, form: Form, path_of: Callable[[int], Path], events_per_file: int) -> None:
        self._form = form
        self._path_of = path_of
        self._room_of_a_file = events_per_file
        self._room = 0
        self._writer: Writer | None = None
        self._file: BinaryIO | None = None
        self._final: Path | None = None
        self.finished: list[Path] = []
        self.bytes = 0

    def refuse_existing(self, count: int) -> None:
        """Look at all names before the first byte is written, so that a refusal leaves nothing half done."""
        try:
            taken = next((path for path in map(self._path_of, range(count)) if path.exists()), None)
        except OSError as error:
            raise self._unwritable(error) from error
        if taken is not None:
            raise _exists(taken)

    def write(self, records: Sequence[Record]) -> None:
        try:
            self._write(records)
        except OSError as error:
            raise self._unwritable(error) from error

    def __enter__(self) -> Files:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Finish the last file, or drop the unfinished one if something went wrong."""
        try:
            if kind is None:
                self._finish()
        except OSError as broken:
            raise self._unwritable(broken) from broken
        finally:
            self._drop()

    def _write(self, records: Sequence[Record]) -> None:
        begin = 0
        while begin < len(records):
            writer = self._writer or self._start()
            part = records[begin : begin + self._room]
            writer.write(part)
            begin += len(part)
            self._room -= len(part)
            if self._room == 0:
                self._finish()

    def _start(self) -> Writer:
        final = self._path_of(len(self.finished))
        final.parent.mkdir(parents=True, exist_ok=True)
        hidden = _hidden(final)
        try:
            self._file = hidden.open("xb")
        except FileExistsError:
            raise Refused(
                f"{hidden} exists: another run is writing {final.name}, or was killed while it did.",
                untouched="No file was overwritten.",
                next_step="If no run is under way remove the hidden file, or generate with another seed or start.",
            ) from None
        self._final = final
        self._room = self._room_of_a_file
        self._writer = self._form.open(self._file)
        return self._writer

    def _finish(self) -> None:
        if self._writer is None or self._file is None or self._final is None:
            return
        self._writer.close()
        self._writer = None
        size = self._file.tell()
        self._file.close()
        _publish(_hidden(self._final), self._final)
        self.bytes += size
        self.finished.append(self._final)
        self._final = None

    def _drop(self) -> None:
        """Remove the unfinished file, if there is one; only a file of our own has `_final` set."""
        if self._file is not None:
            with suppress(OSError):  # a full disk may show once more when the buffer is flushed
                self._file.close()
        if self._final is not None:
            with suppress(OSError):
                _hidden(self._final).unlink(missing_ok=True)

    def _unwritable(self, error: OSError) -> TwinstreamError:
        untouched = f"{len(self.finished)} finished files stay; the unfinished one was removed."
        if error.errno == errno.ENOSPC:
            return DiskFull("No room left while generating.", untouched=untouched, next_step="Free some space.")
        where = error.filename or self._final or "the files"
        return SettingsError(
            f"Cannot write {where}: {error.strerror or error}.",
            untouched=untouched,
            next_step="Name a folder that can be written.",
        )


def _hidden(path: Path) -> Path:
    return path.with_name(f".{path.name}.tmp")


def _publish(hidden: Path, final: Path) -> None:
    """Give a finished file its name; a link, unlike a rename, never replaces a file that came in between."""
    try:
        os.link(hidden, final)
    except FileExistsError:
        raise _exists(final) from None
    except OSError:
        if final.exists():
            raise _exists(final) from None
        os.rename(hidden, final)
    else:
        hidden.unlink()


def _exists(path: Path) -> Refused:
    return Refused(
        f"{path} exists already.",
        untouched="No file was overwritten.",
        next_step="Generate with another seed, another start or into another folder.",
    )
