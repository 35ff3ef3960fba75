"""Errors of the engine as Airflow's: one clear line first, retried only where trying again can help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from twinstream import errors
from twinstream.errors import TwinstreamError

MAY_PASS = frozenset(
    {
        "CommitConflict",
        "DiskFull",
        "EnvironmentMissing",
        "Fenced",
        "LeaseHeld",
        "LedgerError",
        "LedgerFull",
        "LedgerLocked",
        "SourceUnreadable",
        "SparkLost",
        "StagedFileMissing",
        "Unexpected",
    }
)
"""What another try may get past: somebody else at work, something that is down or full. All else needs a person."""


def as_airflow(error: Mapping[str, str]) -> AirflowException:
    """The exception for an error as the engine describes it."""
    text = " ".join(error[part] for part in ("what", "untouched", "next_step") if error.get(part))
    title = getattr(errors, error["kind"], TwinstreamError).title
    return (AirflowException if error["kind"] in MAY_PASS else AirflowFailException)(f"{title}: {text}")


@contextmanager
def in_airflows_words() -> Iterator[None]:
    """Errors of the engine leave this block as Airflow's."""
    from twinstream.runtime.explain import explained

    try:
        yield
    except AirflowException:
        raise
    except Exception as error:
        told = explained(error)
        if told is None:
            raise
        raise as_airflow(described(told)) from error


def described(error: TwinstreamError) -> dict[str, str]:
    """An error of the engine as its command line describes it to programs."""
    from twinstream.cli.output import describe

    return describe(error)
