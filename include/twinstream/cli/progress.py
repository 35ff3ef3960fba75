"""The progress bar of a drain: txids, records per second, lag."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from twinstream.cli.output import err, number, say
from twinstream.runtime.progress import Progress
from twinstream.transaction import Batch, Manifest


class DrainProgress(Progress):
    """Draws on standard error; one line per group where that is not a terminal."""

    def __init__(self, pipeline: str, quiet: bool) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        self._quiet = quiet
        self._began = time.monotonic()
        self._records = 0
        self._todo = 0
        self._bar = Bar(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("txids"),
            TextColumn("{task.fields[speed]}"), TimeElapsedColumn(), console=err, transient=True,
            disable=quiet or not err.is_terminal,
        )  # fmt: skip
        self._task = self._bar.add_task(pipeline, total=None, speed="", visible=False)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def note(self, text: str) -> None:
        if not self._quiet:
            say(text)

    def planned(self, txids: int, records: int) -> None:
        if not self._quiet:
            say(f"Planned {txids} txids with {number(records)} records.")

    def backlog(self, txids: int, records: int) -> None:
        done = self._bar.tasks[0].completed
        self._todo = records
        self._bar.update(self._task, total=done + txids, visible=True)

    def started(self, batches: Sequence[Batch]) -> None:
        self._bar.update(self._task, description=f"txids {batches[0].txid}–{batches[-1].txid}")

    def committed(self, manifests: Sequence[Manifest], seconds: float) -> None:
        records = sum(manifest.accounting.read.count for manifest in manifests)
        self._records += records
        self._todo = max(0, self._todo - records)
        speed = self._records / max(0.001, time.monotonic() - self._began)
        lag = f", {number(self._todo)} records behind" if self._todo else ""
        self._bar.update(self._task, advance=len(manifests), speed=f"{number(speed)} records/s{lag}")
        if not self._quiet and not err.is_terminal:
            span = f"{manifests[0].txid}–{manifests[-1].txid}" if len(manifests) > 1 else str(manifests[0].txid)
            say(f"txids {span} committed: {number(records)} records, {number(speed)} records/s{lag}")


class Notes(Progress):
    """Says only what is worth a line."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def note(self, text: str) -> None:
        if not self._quiet:
            say(f"{text} …")
