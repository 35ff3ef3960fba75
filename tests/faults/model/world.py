"""A small world in which the real ledger and the real runtime meet every interleaving of crashes, zombies and clocks.

Each actor (a runner, a planner, a fold) is a greenlet that runs the engine's own code and hands control back at every
failpoint, which is before and after every durable step. Killing an actor there means that nothing of it ever runs
again that could be seen: every later durable step of it raises once more.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]
from sqlalchemy.pool import StaticPool

from twinstream import failpoints
from twinstream.errors import (
    CommitConflict,
    Fenced,
    GateHeld,
    LeaseHeld,
    LedgerSinkMismatch,
    ProcessingFailed,
    Refused,
    StagedFileMissing,
)
from twinstream.failpoints import durable
from twinstream.ledger import Ledger
from twinstream.ledger.database import Database, sqlite_engine
from twinstream.ledger.rebuild import rebuild
from twinstream.runtime.drain import Runner, RunnerOptions
from twinstream.runtime.leftovers import remove_leftovers
from twinstream.runtime.plan import plan
from twinstream.runtime.progress import Progress
from twinstream.runtime.rate import RateController
from twinstream.runtime.recover import compare
from twinstream.sinks.base import Base
from twinstream.sinks.memory import MemoryDisk, MemoryStore
from twinstream.sources.base import History, Places, Plan
from twinstream.transaction import Accounting, Batch, Range, Staged, StagedFile, State, Tally, TxidResult

DELAY = 5
PER_BATCH = 3
EXPECTED = (Fenced, LeaseHeld, GateHeld, ProcessingFailed, Refused, CommitConflict, StagedFileMissing)


class Crash(BaseException):
    """The process is gone."""


class Broken(Exception):
    """A record that cannot be processed."""


@dataclass
class LogSource:
    """A source like a Kafka partition: records by offset, ranges by offsets."""

    records: list[int] = field(default_factory=list)
    kind = "log"

    def plan(self, places: Places, history: History, batch_records: int, enough: int) -> Plan:
        last = history.last()
        start = last.payload["end"] if last else 0
        ends = [*range(start + batch_records, len(self.records), batch_records), len(self.records)]
        ranges = []
        for end in ends if start < len(self.records) else []:
            ranges.append(Range({"start": start, "end": end}, records=end - start, size=end - start))
            start = end
        return Plan(tuple(ranges))


def tally(records: Sequence[int]) -> Tally:
    total = Tally()
    for record in records:
        total = total + Tally(1, record * 2654435761 % 2**64, record * 2654435761 % 2**64)
    return total


@dataclass
class Simulated:
    """Processes groups of a LogSource into the memory disk; what a file holds is kept beside it."""

    world: World

    @property
    def in_order(self) -> bool:
        return False

    def process(self, batches: Sequence[Batch], staging: str, watermark: int | None) -> Staged:
        world = self.world
        read = {batch.txid: world.read(batch.range) for batch in batches}
        if any(record in world.poisoned for records in read.values() for record in records):
            raise Broken("a record cannot be processed")
        path = f"{staging}/part"
        kept = {
            batch.txid: [] if batch.discard_reason else read[batch.txid]
            for batch in batches
        }  # fmt: skip
        with durable("stage.group"):
            size = world.keep(path, kept)
        results = tuple(
            TxidResult(
                batch.txid,
                Accounting(discarded=tally(read[batch.txid]))
                if batch.discard_reason
                else Accounting(emitted=tally(read[batch.txid]), rows_out=len(read[batch.txid])),
                highest_event_time=max(read[batch.txid], default=None),
                earliest_closing=min(read[batch.txid], default=None),
                digest=tally(kept[batch.txid]),
            )
            for batch in batches
        )
        file = StagedFile("partial", path, size, sum(map(len, kept.values())), batches[0].txid, batches[-1].txid)
        return Staged((file,), results, 0.1)

    def late_tallies(self, files: Sequence[StagedFile], late_before: Mapping[int, int]) -> dict[int, tuple[Tally, int]]:
        found = {}
        for file in files:
            for txid, records in self.world.contents[file.path].items():
                late = [record for record in records if txid in late_before and record <= late_before[txid]]
                if late:
                    found[txid] = (tally(late), len(late))
        return found

    def stage_late(self, batches: Sequence[Batch], staging: str, late_before: Mapping[int, int]) -> list[StagedFile]:
        return []

    def gate(self, files: Sequence[StagedFile]) -> str | None:
        held = self.world.held & {txid for file in files for txid in self.world.contents[file.path]}
        return f"txids {sorted(held)}" if held else None


class Inline(Executor):
    """Runs what is submitted at once, in the actor's own greenlet."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(call(*args, **kwargs))
        except Crash:
            raise
        except BaseException as error:
            future.set_exception(error)
        return future


class NoHeartbeat:
    """In the model time passes only when the model says so: a lease is never renewed by itself."""

    def __init__(self, ledger: Ledger, lease: Any) -> None:
        self.ledger, self.lease = ledger, lease

    def __enter__(self) -> NoHeartbeat:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to stop."""

    def check(self) -> None:
        """A zombie does not notice: only the sink and the ledger's conditions may stop it."""


@dataclass
class Actor:
    """One process."""

    name: str
    body: greenlet
    dead: bool = False
    outcome: str = "running"
    at: str = ""
    """The failpoint it stands at."""

    @property
    def running(self) -> bool:
        return not self.body.dead and not self.dead


class World:
    """The disk, the ledger, the source, the clock, and everyone at work on them."""

    def __init__(self, folder: Path, template: Path, late: str = "drop") -> None:
        self.folder = folder
        self.file = folder / "ledger.db"
        shutil.copyfile(template, self.file)
        self.now = 1_000_000_000
        self.disk = MemoryDisk()
        self.contents: dict[str, dict[int, list[int]]] = {}
        self.source = LogSource()
        self.actors: list[Actor] = []
        self.poisoned: set[int] = set()
        self.held: set[int] = set()
        self.believed_dead = False
        self.steps = 0
        self.seen_ranges: dict[int, str] = {}
        self.mismatches: list[str] = []
        self.hub = getcurrent()
        pipeline = SimpleNamespace(source=self.source, gate=object(), name="model")
        self.definition: Any = SimpleNamespace(pipeline=pipeline, hash="d", late=late, delay=DELAY, name="model")
        self.ledger = self.open_ledger()
        self.generation = self.ledger.generations.open("model", "d", "{}").id
        self._hit = failpoints.hit
        failpoints.hit = self.hit

    def close(self) -> None:
        failpoints.hit = self._hit
        for actor in self.actors:
            self.kill(actor)
        self.ledger.close()

    def open_ledger(self) -> Ledger:
        return Ledger(Database(sqlite_engine(str(self.file), StaticPool), clock=lambda: self.now))

    def store(self) -> Any:
        """A handle on the sink, as every process has one of its own."""
        return MemoryStore(self.disk)

    def keep(self, path: str, rows: dict[int, list[int]]) -> int:
        """Writes a file with the rows of some txids; returns its size."""
        self.disk.files[path] = 1
        self.contents[path] = rows
        return 1

    def lose(self, path: str) -> None:
        """Someone else deletes a file."""
        del self.disk.files[path]

    def read(self, range: Range) -> list[int]:
        return self.source.records[range.payload["start"] : range.payload["end"]]

    def hit(self, name: str) -> None:
        """Every failpoint gives the world a chance to let someone else go on, or to kill this one."""
        current = getcurrent()
        actor = next((actor for actor in self.actors if actor.body is current), None)
        if actor is None:
            return
        if actor.dead:
            raise Crash(name)
        self.steps += 1
        actor.at = name
        self.hub.switch(name)
        if actor.dead:
            raise Crash(name)

    def spawn(self, name: str, work: Callable[[], object]) -> Actor:
        def body() -> None:
            try:
                work()
                actor.outcome = "done"
            except Crash:
                actor.outcome = "killed"
            except EXPECTED as error:
                actor.outcome = type(error).__name__
            except LedgerSinkMismatch as error:
                actor.outcome = "mismatch"
                self.mismatches.append(str(error))

        actor = Actor(name, greenlet(body))
        self.actors = [other for other in self.actors if other.running] + [actor]
        return actor

    def step(self, actor: Actor, count: int = 1) -> None:
        for _ in range(count):
            if not actor.running:
                return
            actor.body.switch()

    def finish(self, actor: Actor) -> str:
        while actor.running:
            actor.body.switch()
        return actor.outcome

    def kill(self, actor: Actor) -> None:
        """SIGKILL: it never does anything durable again."""
        if actor.running:
            actor.dead = True
            if actor.body:
                actor.body.switch()

    def runner(self, group: int | None = None, in_flight: int = 2, max_batches: int | None = None) -> Actor:
        ledger, store = self.ledger, self.store()
        options = RunnerOptions(lease_seconds=10, groups_in_flight=in_flight, max_batches=max_batches)
        rate = RateController(1.0, None, group)
        runner = Runner(
            self.definition, ledger, self.generation, store, lambda: Simulated(self), rate, options, Progress()
        )
        runner.pool = Inline
        runner.heartbeat = NoHeartbeat
        runner.is_dead = lambda holder: self.believed_dead
        return self.spawn("runner", lambda: runner.run(lambda: bool(self.plan_now(ledger))))

    def planner(self) -> Actor:
        ledger = self.ledger
        return self.spawn("planner", lambda: self.plan_now(ledger))

    def plan_now(self, ledger: Ledger) -> int:
        return len(plan(ledger, self.definition, self.generation, Places(self.folder), PER_BATCH, 10**9).txids)

    def folder_actor(self) -> Actor:
        store = self.store()

        def fold() -> None:
            state = store.state()
            path = f"{store.new_staging()}/base"
            rows = self.result(state.txid)
            with durable("stage.base"):
                size = self.keep(path, {state.txid: rows})
            base = Base(state.base + 1, state.txid, (state.base + 1,), None, "fold", (path,))
            if state.txid:
                store.add_base(base, [StagedFile("base", path, size, len(rows), state.txid, state.txid)])

        return self.spawn("fold", fold)

    def cleaner(self) -> Actor:
        ledger, store = self.ledger, self.store()

        def work() -> None:
            compare(ledger, store, self.generation)
            remove_leftovers(ledger, self.generation, store)

        return self.spawn("clean", work)

    def decide(self, action: str, txid: int) -> Actor:
        ledger = self.ledger
        call = ledger.batches.release if action == "release" else ledger.batches.discard
        return self.spawn(action, lambda: call(self.generation, txid, "because"))

    def result(self, frontier: int) -> list[int]:
        """What a reader sees: live rows of txids up to the frontier, late ones left out by the manifests."""
        rows = []
        for path in sorted(self.disk.live):
            if path.endswith("/base"):
                continue
            for txid, records in self.contents[path].items():
                if txid <= frontier:
                    limit = self.disk.manifests[txid].late_before
                    rows += [record for record in records if limit is None or record > limit]
        return sorted(rows)

    def truth(self, frontier: int) -> list[int]:
        """What a reader must see, from the ranges alone."""
        rows, watermark = [], None
        for txid in range(1, frontier + 1):
            manifest = self.disk.manifests[txid]
            records = self.read(manifest.range)
            if manifest.discard_reason is None:
                rows += [r for r in records if watermark is None or self.definition.late == "keep" or r > watermark]
            if records:
                watermark = max(max(records) - DELAY, watermark if watermark is not None else -(10**9))
        return sorted(rows)

    def check(self) -> None:
        """What must hold after every single step."""
        state = self.disk.state
        manifests = [self.disk.manifests[txid] for txid in sorted(self.disk.manifests)]
        assert [m.txid for m in manifests] == list(range(1, state.txid + 1)), "manifests are gapless"
        end = 0
        for manifest in manifests:
            assert manifest.range.payload["start"] == end, "ranges are gapless and do not overlap"
            end = manifest.range.payload["end"]
            assert self.seen_ranges.setdefault(manifest.txid, manifest.range_digest) == manifest.range_digest
            whole = tally(self.read(manifest.range))
            assert manifest.accounting.read == whole, "accounting closes"
        assert all(path in self.disk.files for path in self.disk.live), "nothing that is committed was deleted"
        assert self.result(state.txid) == self.truth(state.txid), "every record exactly once"
        for base in self.disk.bases:
            for path in base.files:
                assert self.contents[path][base.frontier] == self.truth(base.frontier), "a base is the truth"

    def check_ledger(self) -> None:
        """The ledger never runs ahead of the sink, and agrees with it on what is committed."""
        generation = self.ledger.generations.get(self.generation)
        assert generation.frontier <= self.disk.state.txid, "COMMITTED only follows the sink"
        committed = self.ledger.batches.get(self.generation, 1, generation.frontier)
        assert all(b.state == State.COMMITTED for b in committed)
        assert all(b.range_digest == self.disk.manifests[b.txid].range_digest for b in committed)
        ranges = self.ledger.batches.get(self.generation, 1, generation.last_txid)
        ends = [0, *(b.range.payload["end"] for b in ranges)]
        assert [b.range.payload["start"] for b in ranges] == ends[:-1], "planned ranges are gapless"

    def swap_ledger(self, file: Path) -> None:
        """Puts another ledger file in the place of this one."""
        self.ledger.close()
        copy_ledger(file, self.file)
        self.ledger = self.open_ledger()

    def rebuild(self) -> None:
        """What docs/protocol.md says to do with a ledger that is older than the sink."""
        store = self.store()
        state = store.state()
        rebuild(self.ledger.database, self.generation, store.manifests(1, state.txid), state.epoch, lambda _: True)

    def settle(self) -> None:
        """Everyone dies, what is broken is mended, and one runner finishes the work."""
        for actor in self.actors:
            self.kill(actor)
        self.poisoned.clear()
        self.held.clear()
        self.now += 3600 * 1_000_000
        self.believed_dead = True
        for batch in self.ledger.batches.open(self.generation):
            if batch.state == State.HELD:
                self.ledger.batches.release(self.generation, batch.txid, "settle")
        for _ in range(3):
            outcome = self.finish(self.runner())
            if outcome == "mismatch":
                self.rebuild()
        assert outcome == "done", outcome
        self.check()
        self.check_ledger()
        end = self.disk.manifests[self.disk.state.txid].range.payload["end"] if self.disk.state.txid else 0
        assert end == len(self.source.records), "nothing was lost"


def copy_ledger(source: Path, target: Path) -> None:
    """A cold copy of a SQLite ledger."""
    for suffix in ("", "-wal", "-shm"):
        part = Path(f"{source}{suffix}")
        Path(f"{target}{suffix}").unlink(missing_ok=True)
        if part.exists():
            shutil.copyfile(part, f"{target}{suffix}")
