"""Comparing the modes of a pipeline on its own records, without touching the pipeline."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from twinstream.engine import Engine
from twinstream.modes.cost import cpu_seconds
from twinstream.modes.latency import committed, latencies, quantile
from twinstream.modes.modes import MicroBatch, Mode, Watch, modes
from twinstream.modes.recovery import recovery_seconds
from twinstream.modes.replay import Recorded
from twinstream.modes.result import Compared, Measured
from twinstream.modes.world import World
from twinstream.reconcile.digests import digest
from twinstream.reconcile.key import result_key
from twinstream.reconcile.shape import shape_of
from twinstream.sources.kafka.source import KafkaSource

PIECES = 5
"""A runner that is to be killed commits in so many pieces."""


@dataclass(frozen=True)
class CompareRequest:
    """What a user asks of a comparison."""

    records: int = 50_000
    seconds: float = 20.0
    every: str = "1 second"
    kill: bool = True


def compare_modes(engine: Engine, name: str, request: CompareRequest, tell: Callable[[str], None]) -> Compared:
    """Measures every mode on the newest records of the pipeline's source."""
    definition = engine.definition(name)
    source = definition.pipeline.source
    with ExitStack() as until_the_end:
        folders = until_the_end.enter_context(_folders(engine.settings.home))
        recorded: Recorded | None = None
        topics: Mapping[str, str] = {}
        most = None
        if isinstance(source, KafkaSource):
            recorded = Recorded.of(source, engine.places(definition), request.records)
            topics = until_the_end.enter_context(recorded.topics())
            recorded.send(topics, None)
        else:
            most = -(-request.records // definition.pipeline.batch_records)
        comparison = _Comparison(engine, name, request, tell, *folders, recorded, topics, most)
        return comparison.run()


@dataclass
class _Comparison:
    engine: Engine
    name: str
    request: CompareRequest
    tell: Callable[[str], None]
    folder: Path
    ledgers: Path
    recorded: Recorded | None
    topics: Mapping[str, str]
    """The records, ready to be read."""
    max_batches: int | None

    def run(self) -> Compared:
        found = []
        self.records = len(self.recorded.records) if self.recorded else 0
        for mode in modes(self.request.every, self.max_batches):
            why_not = mode.why_not(self.engine.definition(self.name))
            found.append(Measured(mode.name, why_not) if why_not else self._measured(mode))
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return Compared(self.name, now, self.records, self.request.seconds, self.request.every, tuple(found))

    def _measured(self, mode: Mode) -> Measured:
        self.tell(f"{mode.name}: warming up")
        self._caught_up(mode)
        self.tell(f"{mode.name}: catching up with {self.records or 'all'} records")
        watch, print_ = self._caught_up(mode)
        self.records = self.records or watch.records
        per_second = watch.records / watch.seconds if watch.seconds else None
        found = Measured(mode.name, records_per_second=per_second, digest=print_)
        if self.recorded is not None:
            self.tell(f"{mode.name}: {self.records} records over {self.request.seconds:g} s")
            p50, p99, cpu = self._live(mode, self.recorded)
            found = replace(found, p50=p50, p99=p99, cpu_per_million=cpu)
        if self.request.kill:
            self.tell(f"{mode.name}: killing a runner")
            recovery, after = self._recovered(mode)
            found = replace(found, recovery=recovery, digest=after or print_)
        return found

    def _caught_up(self, mode: Mode) -> tuple[Watch, str]:
        watch = Watch(self.records)
        engine = self._world(self.topics).engine(self.engine.settings, self.engine.spark())
        mode.catch_up(engine, self.name, watch)
        print_ = self._digest(engine)
        engine.close()
        return watch, print_

    def _live(self, mode: Mode, recorded: Recorded) -> tuple[float, float, float | None]:
        """Latency at half and at 99 %, and CPU seconds per million records."""
        with recorded.topics() as topics:
            engine = self._world(topics).engine(self.engine.settings, self.engine.spark())
            watch = Watch(self.records)
            sending = [0.0]

            def send() -> None:
                before = time.thread_time()
                recorded.send(topics, self.request.seconds)
                sending[0] = time.thread_time() - before

            began = cpu_seconds()
            mode.live(engine, self.name, watch, send)
            ended = cpu_seconds()
            generation = engine.generation(engine.definition(self.name))
            batches = engine.ledger.batches.get(generation.id, 1, generation.frontier)
            waited = latencies(recorded.options, committed(batches))
            engine.close()
        cost = None if began is None or ended is None else (ended - began - sending[0]) / watch.records * 1e6
        return quantile(waited, 0.5), quantile(waited, 0.99), cost

    def _recovered(self, mode: Mode) -> tuple[float | None, str | None]:
        """Seconds from the kill to the next commit, and the digest once what the two runners left is finished."""
        world = replace(self._world(self.topics), batch_records=max(1, self.records // PIECES))
        found = recovery_seconds(self.engine.settings, world, mode.name, self.request.every, self.max_batches)
        if self.max_batches is not None:
            return found, None  # they were not to read everything, and other sizes end elsewhere
        engine = world.engine(self.engine.settings, self.engine.spark())
        MicroBatch().catch_up(engine, self.name, Watch())
        print_ = self._digest(engine)
        engine.close()
        return found, print_

    def _digest(self, engine: Engine) -> str:
        rows = engine.read(self.name)
        definition = engine.definition(self.name)
        key = result_key(definition, definition.columns(engine.spark()))
        return digest(rows, shape_of(rows.schema, key)).hexdigest

    def _world(self, topics: Mapping[str, str]) -> World:
        place = self.folder / secrets.token_hex(4)
        place.mkdir()
        return World(self.name, place / "home", self.ledgers / f"{place.name}.db", topics)


@contextmanager
def _folders(home: Path) -> Iterator[tuple[Path, Path]]:
    """A folder beneath the home, because Spark must reach it too, and one of this host for ledgers; gone at the end."""
    (home / "modes").mkdir(parents=True, exist_ok=True)
    with (
        TemporaryDirectory(dir=home / "modes", ignore_cleanup_errors=True) as tables,
        TemporaryDirectory(ignore_cleanup_errors=True) as ledgers,
    ):
        yield Path(tables), Path(ledgers)
