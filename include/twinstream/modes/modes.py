"""The ways to stream, each made to do the same work while it is watched."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from twinstream.engine import DrainRequest, Engine
from twinstream.ledger.runs import CONTINUOUS
from twinstream.pipeline import Definition
from twinstream.runtime.continuous import ContinuousRequest
from twinstream.runtime.progress import Progress
from twinstream.sources.kafka.source import KafkaSource
from twinstream.transaction import Batch, Manifest


class Watch(Progress):
    """Counts what is committed, and takes the time from the first work to the last commit."""

    def __init__(self, wanted: int | None = None) -> None:
        self._wanted = wanted
        self._began: float | None = None
        self._ended: float | None = None
        self.records = 0
        self.done = threading.Event()
        """Set when as many records are committed as were wanted."""

    @property
    def seconds(self) -> float:
        return 0.0 if self._began is None or self._ended is None else self._ended - self._began

    def started(self, batches: Sequence[Batch]) -> None:
        self._began = self._began or time.monotonic()

    def committed(self, manifests: Sequence[Manifest], seconds: float) -> None:
        self._ended = time.monotonic()
        self.records += sum(one.accounting.read.count for one in manifests)
        if self._wanted is not None and self.records >= self._wanted:
            self.done.set()


class Mode(Protocol):
    """A way to stream a pipeline."""

    @property
    def name(self) -> str: ...

    def why_not(self, definition: Definition) -> str | None:
        """Why the pipeline cannot be streamed this way, if it cannot."""

    def catch_up(self, engine: Engine, name: str, watch: Watch) -> None:
        """Commits everything that waits."""

    def live(self, engine: Engine, name: str, watch: Watch, send: Callable[[], None]) -> None:
        """Commits what `send` sends, as it would be done day by day; `send` takes its time."""


@dataclass(frozen=True)
class MicroBatch:
    """A drain whenever the time has come."""

    max_batches: int | None = None
    group: int | None = None
    name: str = "micro-batch"

    def why_not(self, definition: Definition) -> str | None:
        return None

    def catch_up(self, engine: Engine, name: str, watch: Watch) -> None:
        engine.drain(name, DrainRequest(self.max_batches, group=self.group, wait_seconds=0), watch)

    def live(self, engine: Engine, name: str, watch: Watch, send: Callable[[], None]) -> None:
        send()
        self.catch_up(engine, name, watch)


@dataclass(frozen=True)
class ContinuousMode:
    """A query that never ends."""

    every: str
    name: str = "continuous"

    def why_not(self, definition: Definition) -> str | None:
        source = definition.pipeline.source
        if isinstance(source, KafkaSource):
            return None
        return f"{definition.name} reads {source.kind}, and continuous mode streams topics."

    def catch_up(self, engine: Engine, name: str, watch: Watch) -> None:
        engine.continuous(name, ContinuousRequest(self.every, wait_seconds=0), watch, watch.done)

    def live(self, engine: Engine, name: str, watch: Watch, send: Callable[[], None]) -> None:
        failed: list[BaseException] = []

        def send_when_it_runs() -> None:
            try:
                while not _runs(engine, name) and not watch.done.wait(0.05):
                    pass
                send()
            except BaseException as error:
                failed.append(error)
                watch.done.set()

        sending = threading.Thread(target=send_when_it_runs, daemon=True)
        sending.start()
        try:
            self.catch_up(engine, name, watch)
        finally:
            watch.done.set()
            sending.join()
        if failed:
            raise failed[0]


def _runs(engine: Engine, name: str) -> bool:
    """Whether a query is up: then its run says something of itself."""
    with suppress(Exception):
        generation = engine.ledger.generations.current(name)
        if generation is not None:
            return any(run.kind == CONTINUOUS and run.result for run in engine.ledger.runs.newest(generation.id))
    return False


def modes(every: str, max_batches: int | None, group: int | None = None) -> tuple[Mode, ...]:
    """All there are."""
    return (MicroBatch(max_batches, group), ContinuousMode(every))
