"""What errors of Spark and of the system mean to a user: a full disk, a Spark that died, a file that is damaged."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from twinstream.errors import DiskFull, LedgerSinkMismatch, SourceUnreadable, SparkLost, TwinstreamError
from twinstream.sinks.base import SEE_PROTOCOL

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_NO_ROOM_WORDS = re.compile(r"No space left on device|Disk quota exceeded|database or disk is full")
_WRITTEN = re.compile(r"writing rows to file:/*(/\S+?)\.?(?:\s|$)")
_UNREADABLE = re.compile(
    r"(?:Encountered error while reading|Could not read footer for) file:? file:/*(/\S+?)\.?(?:\s|$)"
)
_CAUSE = re.compile(r"^Caused by: (?:[\w$]+\.)+[\w$]+: (.+)$", re.MULTILINE)
_LOST_TYPES = ("Py4JNetworkError", "RetriesExceeded", "ConnectionRefusedError", "ConnectionResetError")
_LOST_WORDS = re.compile(
    r"\AAn error occurred while calling \S+\Z|Answer from Java side is empty|SparkContext was shut down"
    r"|stopped SparkContext|StatusCode\.UNAVAILABLE|does not exist in the JVM|'JavaPackage' object is not callable"
)
_SAYS_NOTHING = re.compile(r"An error occurred while calling|An exception was thrown from the Python worker")
_JAVA_CLASS = re.compile(r"^:? *(?:\((?:[\w$]+\.)+[\w$]+\) |(?:[\w$]+\.)+[\w$]+: )+")
_TRACE = "Traceback (most recent call last):"


@contextmanager
def in_our_words() -> Iterator[None]:
    """Errors that a user can act on leave this block as such."""
    try:
        yield
    except Exception as error:
        told = explained(error)
        if told is None or told is error:
            raise
        raise told from error


def explained(error: BaseException) -> TwinstreamError | None:
    """The error that a user can act on; None where only the error itself can say."""
    if isinstance(error, TwinstreamError):
        return error
    chain = list(_chain(error))
    texts = [_text(link) for link in chain]
    said = "\n".join(texts)
    if any(isinstance(link, OSError) and link.errno in _NO_ROOM for link in chain) or _NO_ROOM_WORDS.search(said):
        place = _WRITTEN.search(said)
        return DiskFull(
            f"There is no room left on the disk{f' of {unquote(place[1])}' if place else ''}.",
            untouched="What was committed stays; nothing is committed by halves.",
            next_step="Make room, then run the command again: it goes on where this one stopped.",
        )
    if any(type(link).__name__ in _LOST_TYPES for link in chain) or any(map(_LOST_WORDS.search, texts)):
        return SparkLost(
            "Spark stopped in the middle of the work.",
            untouched="What was committed stays; nothing is committed by halves.",
            next_step="logs/spark.log in TWINSTREAM_HOME may say why (often too little memory); then run the command "
            "again: it goes on where this one stopped.",
        )
    file = _UNREADABLE.search(said)
    return _unreadable(unquote(file[1]), said) if file else None


def one_line(error: BaseException) -> str:
    """The first telling line of an error, without the trace."""
    text = error.what if isinstance(error, TwinstreamError) else _text(error)
    if _TRACE in text:
        text = "\n".join(line for line in text.rpartition(_TRACE)[2].splitlines() if not line.startswith(" "))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if not _SAYS_NOTHING.match(line)] or lines
    first = _JAVA_CLASS.sub("", telling[0]) or telling[0] if telling else ""
    return (first or type(error).__name__)[:500]


def _unreadable(file: str, said: str) -> TwinstreamError:
    causes = [cause for cause in _CAUSE.findall(said) if file not in unquote(cause)]
    reason = f": {causes[-1].strip().rstrip('.')}" if causes else ""
    if "/_twinstream/" in file:
        return LedgerSinkMismatch(
            f"The file {file} belongs to the result but cannot be read{reason}.",
            untouched="Nothing was read from the damaged result.",
            next_step=SEE_PROTOCOL,
        )
    return SourceUnreadable(
        f"The source file {file} cannot be read{reason}.",
        untouched="No txid that holds it was committed.",
        next_step="Bring back the file as it was and run the command again; if that is impossible, "
        "`twinstream discard` gives up the txid, with a reason.",
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _text(error: BaseException) -> str:
    """What an error says; errors of a Spark that is gone cannot even say that."""
    try:
        return str(error)
    except Exception:
        return type(error).__name__
