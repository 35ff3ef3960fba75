"""Errors of Spark, the disk and the libraries in words that a user can act on, on both kinds of Spark."""

from __future__ import annotations

import errno

import pytest

from twinstream.errors import DiskFull, LedgerSinkMismatch, SourceUnreadable, SparkLost, TwinstreamError
from twinstream.runtime.explain import explained, in_our_words, one_line

CLASSIC = (
    "An error occurred while calling o38.parquet.\n"
    ": org.apache.spark.SparkException: {message}\n\tat org.apache.spark.sql.errors.X(Y.scala:1)\n"
    "Caused by: org.apache.parquet.io.ParquetDecodingException: {cause}\n\t... 44 more\n"
)
CONNECT = (
    "{message}\n\nJVM stacktrace:\norg.apache.spark.SparkException\n\tat org.apache.spark.sql.errors.X(Y.scala:1)\n"
    "Caused by: org.apache.parquet.io.ParquetDecodingException: {cause}\n"
)
READING = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file://{path}.  SQLSTATE: KD001"
WRITING = "[TASK_WRITE_FAILED] Task failed while writing rows to file:/tables/my%20views/_data/1f. SQLSTATE: 58030"


class Py4JError(Exception):
    """Named as Py4J's own."""


class Unspeakable(Exception):
    """As errors of a Spark that is gone: asking what they say fails."""

    def __str__(self) -> str:
        raise ConnectionRefusedError


@pytest.mark.parametrize("form", [CLASSIC, CONNECT])
def test_a_source_file_that_spark_cannot_read_is_named_with_the_reason(form: str) -> None:
    said = form.format(message=READING.format(path="/data/a%20b.parquet"), cause="could not read page")
    found = explained(Py4JError(said))
    assert isinstance(found, SourceUnreadable)
    assert found.what == "The source file /data/a b.parquet cannot be read: could not read page."


@pytest.mark.parametrize("form", [CLASSIC, CONNECT])
def test_a_file_of_the_result_that_cannot_be_read_is_no_fault_of_the_source(form: str) -> None:
    path = "/tables/x/_twinstream/g1-ab/_data/1f/part-0.parquet"
    found = explained(Py4JError(form.format(message=READING.format(path=path), cause="could not read page")))
    assert isinstance(found, LedgerSinkMismatch)
    assert path in found.what


@pytest.mark.parametrize("form", [CLASSIC, CONNECT])
def test_a_full_disk_is_named_with_the_folder_that_was_written(form: str) -> None:
    found = explained(Py4JError(form.format(message=WRITING, cause="java.io.IOException: No space left on device")))
    assert isinstance(found, DiskFull)
    assert "/tables/my views/_data/1f" in found.what


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "over quota"),
        OSError("[Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device"),
        Exception(
            "Generic LocalFileSystem error\n  Unable to copy data to file: No space left on device (os error 28)"
        ),
    ],
)
def test_every_way_to_say_that_the_disk_is_full_is_understood(error: Exception) -> None:
    assert isinstance(explained(error), DiskFull)
    wrapped = RuntimeError("writing failed")
    wrapped.__cause__ = error
    assert isinstance(explained(wrapped), DiskFull)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
        Py4JError("An error occurred while calling o38.parquet"),
        Py4JError("org.apache.spark.sql.functions does not exist in the JVM"),
        TypeError("'JavaPackage' object is not callable"),
        Exception("Cannot call methods on a stopped SparkContext."),
        Exception("Job 3 cancelled because SparkContext was shut down"),
        Exception("status = StatusCode.UNAVAILABLE"),
    ],
)
def test_a_spark_that_is_gone_is_called_so(error: Exception) -> None:
    assert isinstance(explained(error), SparkLost)


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), KeyError("y"), BrokenPipeError(), Py4JError("An error occurred while calling o1.x. Trace:")],
)
def test_what_is_not_known_is_left_as_it_is(error: Exception) -> None:
    assert explained(error) is None
    with pytest.raises(type(error)) as raised, in_our_words():
        raise error
    assert raised.value is error


def test_our_own_errors_are_left_as_they_are() -> None:
    ours = TwinstreamError("It is so.")
    assert explained(ours) is ours


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (Py4JError(CLASSIC.format(message="[DIVIDE_BY_ZERO] No.", cause="x")), "[DIVIDE_BY_ZERO] No."),
        (
            Py4JError(
                "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
                '  File "a.py", line 1, in f\nValueError: no such page\n'
            ),
            "ValueError: no such page",
        ),
        (TwinstreamError("It is so.", next_step="Go."), "It is so."),
        (ValueError("\n\n  first\nsecond"), "first"),
        (ValueError(), "ValueError"),
        (Unspeakable(), "Unspeakable"),
    ],
)  # fmt: skip
def test_one_line_tells_what_happened(error: Exception, line: str) -> None:
    assert one_line(error) == line
