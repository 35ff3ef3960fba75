"""A long-lived query, in whatever mode: its run in the ledger, the watch over it, and its offset log."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinstream.errors import TwinstreamError
from twinstream.ledger import Generation, Ledger, Run
from twinstream.ledger.journal import PAUSED, RESUMED
from twinstream.ledger.runs import STREAM_SECONDS, Wanted
from twinstream.runtime.explain import one_line
from twinstream.runtime.heartbeat import run_heartbeat
from twinstream.runtime.holder import is_dead, new_holder
from twinstream.runtime.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

NOTE_SECONDS = 2.0
"""How often a run says in the ledger how it is."""
Facts = dict[str, Any]


@contextmanager
def logged(
    ledger: Ledger, generation: Generation, kind: str, context: Mapping[str, str], ended: Callable[[], Facts]
) -> Iterator[Run]:
    """The run in the ledger, alive as long as this is, and how it ended."""
    frontier = ledger.generations.get(generation.id).frontier
    wanted = Wanted(generation.id, kind, frontier, generation.definition_hash, {})
    run = ledger.runs.start(wanted, new_holder(), STREAM_SECONDS, is_dead=is_dead, context=context)
    try:
        with run_heartbeat(ledger, run, STREAM_SECONDS):
            yield run
    except BaseException as error:
        said = str(error).splitlines()[0][:500] if isinstance(error, TwinstreamError) else one_line(error)
        with suppress(TwinstreamError):
            ledger.runs.fail(run, said)
        raise
    ledger.runs.finish(run, ended())


def watch(
    ledger: Ledger,
    run: Run,
    query: StreamingQuery,
    progress: Progress,
    is_over: Callable[[], bool],
    facts: Callable[[], Facts],
) -> bool:
    """Returns once the query has ended or should, and notes how it is meanwhile; whether a pause is the reason.

    `is_over` is asked again and again, and takes its time to answer.
    """
    noted = 0.0
    while query.isActive and not is_over():
        if time.monotonic() - noted >= NOTE_SECONDS:
            noted = time.monotonic()
            ledger.runs.note(run, facts())
            if is_paused(ledger, run.generation):
                progress.note(f"{ledger.generations.get(run.generation).pipeline} was paused: the query ends")
                return True
    return False


def is_paused(ledger: Ledger, generation: int) -> bool:
    """Whether somebody has paused the pipeline."""
    newest = ledger.journal.last(generation, (PAUSED, RESUMED))
    return newest is not None and newest["kind"] == PAUSED


def logged_offsets(checkpoint: Path, batch: int) -> Mapping[str, Mapping[str, int]]:
    """How far a query comes with a batch, by topic and partition, by the offset log in its checkpoint."""
    # A version, settings, then a line for each source.
    lines = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()
    found: dict[str, dict[str, int]] = json.loads(lines[2])
    return found
