"""Every transaction rule taken out once: the scene that guards it holds with the rule and breaks without it."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from tests.faults.model import world as model
from tests.faults.model.delta_world import DeltaWorld
from tests.faults.model.drive import lease_runs_out, stopped_at, until
from tests.faults.model.world import PER_BATCH, Simulated, World, copy_ledger
from tests.unit.sinks import test_conformance as conformance
from twinstream.errors import CommitConflict, LeaseHeld, LedgerLocked, Refused
from twinstream.ledger import Ledger, PlanRaced
from twinstream.ledger import attempts as ledger_attempts
from twinstream.ledger import batches as ledger_batches
from twinstream.ledger import database as ledger_database
from twinstream.ledger.attempts import Attempts
from twinstream.ledger.batches import Batches
from twinstream.ledger.database import Database
from twinstream.ledger.pins import Pins
from twinstream.ledger.schema import batches
from twinstream.runtime import drain, recover
from twinstream.runtime.clean import clean
from twinstream.runtime.commit import Committer
from twinstream.runtime.read import view_of
from twinstream.runtime.work import WorkList
from twinstream.sinks import delta, memory
from twinstream.sinks.base import Base, SinkState
from twinstream.sinks.delta import DeltaStore
from twinstream.sinks.memory import MemoryStore
from twinstream.transaction import Attempt, Batch, StagedFile, State

BROKEN = (AssertionError, pytest.fail.Exception)
"""What a scene that does not hold raises."""
Make = Callable[..., World]


@pytest.fixture
def make(tmp_path: Path, template: Path) -> Iterator[Make]:
    """Makes worlds with a few records, each in a folder of its own."""
    made: list[World] = []

    def new(records: int = 12, kind: type[World] = World, late: str = "drop") -> World:
        for other in made:
            other.close()
        made.clear()
        folder = tmp_path / os.urandom(4).hex()
        folder.mkdir()
        made.append(kind(folder, template, late))
        made[0].source.records.extend(range(records))
        return made[0]

    yield new
    for world in made:
        world.close()


def bench(tmp_path: Path, kind: str = "memory") -> conformance.Bench:
    """A fresh place for a scene of the sinks' conformance suite."""
    folder = tmp_path / os.urandom(4).hex()
    folder.mkdir()
    return conformance.Bench(kind, folder)


def drained(world: World, group: int | None = None) -> None:
    """A runner does everything there is to do, and the result is right."""
    assert world.finish(world.runner(group)) == "done"
    world.check()
    world.check_ledger()


def two_planners_at_once(world: World) -> None:
    slow = world.planner()
    assert until(world, slow, "ledger.plan:before")
    world.finish(world.planner())
    world.finish(slow)
    world.check_ledger()
    drained(world)


def test_rule_1_ranges_are_gapless_and_do_not_overlap(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    two_planners_at_once(make())
    plan = Batches.plan

    def whatever_is_there(self: Batches, generation: int, expected_last: int, *rest: Any, **options: Any) -> range:
        try:
            return plan(self, generation, expected_last, *rest, **options)
        except PlanRaced:
            last = made.ledger.generations.get(generation).last_txid
            return plan(self, generation, last, *rest, **options)

    monkeypatch.setattr(Batches, "plan", whatever_is_there)
    made = make()
    with pytest.raises(AssertionError, match="planned ranges are gapless"):
        two_planners_at_once(made)


def the_second_attempt_is_an_hour_later(world: World) -> None:
    planned_at = world.now
    world.kill(stopped_at(world, "stage.group:after"))
    world.now += 3600 * 1_000_000
    drained(world)
    assert {manifest.batch_time for manifest in world.disk.manifests.values()} == {planned_at}


def test_rule_2_the_batch_time_is_logged_with_the_range(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    the_second_attempt_is_an_hour_later(make())
    made = make()
    load = ledger_batches._batch
    monkeypatch.setattr(ledger_batches, "_batch", lambda row: replace(load(row), batch_time=made.now))
    with pytest.raises(AssertionError):
        the_second_attempt_is_an_hour_later(made)


def test_rule_3_every_attempt_has_a_staging_folder_of_its_own(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    drained(make(), group=1)
    monkeypatch.setattr(MemoryStore, "new_staging", lambda self: "staging")
    with pytest.raises(AssertionError):
        drained(make(), group=1)


def killed_while_staging_nothing_is_left(world: World) -> None:
    world.kill(stopped_at(world, "stage.group:after"))
    world.believed_dead = True
    drained(world)
    assert set(world.disk.files) == world.disk.live, "everything that was staged is committed or removed"


def test_rule_3_an_attempt_is_in_the_ledger_before_it_starts(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_while_staging_nothing_is_left(make())

    def logged_afterwards(self: Any, group: Any, watermark: int | None) -> Attempt:
        staging = self._runner._store.new_staging()
        staged = self._runner.processor().process(group.batches, staging, watermark)
        attempt: Attempt = self._ledger.attempts.start(self._lease, group.first, group.last, staging)
        self._ledger.attempts.processed(self._lease, attempt, staged)
        return Attempt(attempt.id, attempt.first, attempt.last, attempt.number, attempt.epoch, staging, staged=staged)

    monkeypatch.setattr(drain._Round, "_process", logged_afterwards)
    with pytest.raises(AssertionError, match="committed or removed"):
        killed_while_staging_nothing_is_left(make())


def test_rule_4_a_group_that_fails_is_split(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def all_in_one_group(world: World) -> None:
        world.poisoned = {7}
        world.step(world.runner(), 500)
        assert world.disk.state.txid == 2

    all_in_one_group(make())
    monkeypatch.setattr(WorkList, "put_back", lambda self, *groups: None)
    with pytest.raises(AssertionError):
        all_in_one_group(make())


def test_rule_4_groups_commit_in_txid_order(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def the_first_group_fails(world: World) -> None:
        world.poisoned = {1}
        world.step(world.runner(2), 500)
        assert world.disk.state.txid == 0
        world.poisoned = set()
        lease_runs_out(world)
        drained(world)

    the_first_group_fails(make())

    class AnyOrder(dict):
        def pop(self, key: int, default: Any = None) -> Any:
            return super().pop(min(self)) if self else default

    begin = drain._Round.__init__

    def in_any_order(self: Any, *arguments: Any) -> None:
        begin(self, *arguments)
        self._done = AnyOrder(self._done)

    monkeypatch.setattr(drain._Round, "__init__", in_any_order)
    with pytest.raises(AssertionError):
        the_first_group_fails(make())


def killed_at_every_step(make: Make) -> None:
    for steps in range(1, 60):
        world = make(6)
        actor = world.runner(1)
        world.step(actor, steps)
        world.kill(actor)
        world.check()
        world.check_ledger()
        if actor.outcome == "done":
            return


def test_rule_5_the_mark_follows_the_commit(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_at_every_step(make)
    commit = Committer.commit

    def marked_before(self: Committer, generation: Any, group: Sequence[Batch], attempt: Attempt) -> Any:
        store = self.store.commit

        def later(to_commit: Any) -> bool:
            self.ledger.attempts.committed(self.lease.generation, to_commit.manifests)
            return store(to_commit)

        monkeypatch.setattr(self.store, "commit", later)
        return commit(self, generation, group, attempt)

    monkeypatch.setattr(Committer, "commit", marked_before)
    with pytest.raises(AssertionError, match="only follows the sink"):
        killed_at_every_step(make)


def test_rule_5_data_and_txid_become_visible_in_one_step(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_at_every_step(make)
    swap = MemoryStore._swap

    def in_two_steps(self: Any, step: str, version: int, after: Any, manifests: Any = (), bases: Any = (),
                     files: Any = ()) -> bool:  # fmt: skip
        if not swap(self, step, version, after, manifests, bases):
            return False
        return not files or swap(self, step, version + 1, after, (), (), files)

    monkeypatch.setattr(MemoryStore, "_swap", in_two_steps)
    with pytest.raises(AssertionError, match="every record exactly once"):
        killed_at_every_step(make)


def killed_between_commit_and_mark(world: World) -> None:
    world.kill(stopped_at(world, "ledger.committed:before", group=2))
    world.believed_dead = True
    assert world.finish(world.runner(max_batches=1)) == "done"
    drained(world)


def test_rule_5_recovery_asks_the_sink(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_between_commit_and_mark(make())
    monkeypatch.setattr(drain, "recover", lambda ledger, store, lease: store.fence(lease.epoch))
    with pytest.raises(AssertionError):
        killed_between_commit_and_mark(make())


@pytest.mark.parametrize("kind", ["memory", "delta"])
def test_rule_6_only_the_very_next_or_the_very_same(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scenes: list[Callable[[], None]] = [
        lambda: conformance.test_the_same_group_again_is_a_no_op(bench(tmp_path, kind)),
        lambda: conformance.test_the_same_txid_with_another_range_stops(bench(tmp_path, kind)),
        lambda: conformance.test_a_gap_or_an_overlap_stops(bench(tmp_path, kind), 3, 3),
        lambda: conformance.test_a_backwards_version_stops(bench(tmp_path, kind)),
        lambda: conformance.test_an_older_epoch_cannot_commit(bench(tmp_path, kind)),
    ]
    for scene in scenes:
        scene()
    monkeypatch.setattr({"memory": memory, "delta": delta}[kind], "check_commit", lambda *_: True)
    for scene in scenes:
        with pytest.raises(BROKEN):
            scene()


def a_restored_sink_is_left_alone(world: World) -> None:
    """The sink is rolled back behind a COMMITTED mark: noticed before anything is written."""
    drained(world)
    world.source.records.extend(range(3))
    last = world.disk.state.txid
    del world.disk.manifests[last]
    world.disk.state = SinkState(last - 1, world.disk.state.epoch, 0)
    version = world.disk.version
    assert world.finish(world.runner()) == "mismatch"
    assert world.disk.version == version, "nothing was touched"


def test_rule_6_a_sink_behind_the_mark_stops_untouched(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    a_restored_sink_is_left_alone(make())
    monkeypatch.setattr(recover, "compare", lambda ledger, store, generation: store.state())
    with pytest.raises(AssertionError):
        a_restored_sink_is_left_alone(make())


def an_older_ledger_cleans_nothing(world: World) -> None:
    """The ledger is restored from a backup that has an attempt the sink has long committed."""
    world.kill(stopped_at(world, "sink.commit:before"))
    backup = world.folder / "backup.db"
    copy_ledger(world.file, backup)
    world.believed_dead = True
    drained(world)
    world.swap_ledger(backup)
    files = dict(world.disk.files)
    assert world.finish(world.runner()) == "mismatch"
    assert world.disk.files == files
    world.rebuild()
    drained(world)


def test_rule_6_a_sink_ahead_of_the_ledger_stops(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    an_older_ledger_cleans_nothing(make())
    monkeypatch.setattr(recover, "compare", lambda ledger, store, generation: store.state())
    monkeypatch.setattr(MemoryStore, "fence", lambda self, epoch: _taken(self, epoch))
    with pytest.raises(AssertionError):
        an_older_ledger_cleans_nothing(make())


def _taken(store: MemoryStore, epoch: int) -> Any:
    """A fence that lets everyone in."""
    state = store.disk.state
    store.disk.state = SinkState(state.txid, epoch, state.base)
    return store.disk.state


def someone_plans_while_spark_works(world: World) -> None:
    stopped_at(world, "stage.group:before")
    other = Ledger(Database(ledger_database.sqlite_engine(str(world.file))))
    try:
        other.generations.note_rate(world.generation, 1.0)
    finally:
        other.close()


def test_rule_7_no_lock_is_held_while_spark_works(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    someone_plans_while_spark_works(make())
    monkeypatch.setattr(ledger_database, "BUSY_SECONDS", 0.2)
    process = Simulated.process

    def within_a_transaction(self: Simulated, *arguments: Any) -> Any:
        with self.world.ledger.database.write("attempt"):
            return process(self, *arguments)

    monkeypatch.setattr(Simulated, "process", within_a_transaction)
    with pytest.raises(LedgerLocked):
        someone_plans_while_spark_works(make())


def a_zombie_reports_what_it_staged(world: World, meanwhile: AbstractContextManager[Any]) -> None:
    zombie = stopped_at(world, "stage.group:after", group=2)
    lease_runs_out(world)
    runner = stopped_at(world, "stage.group:after", group=2)
    with meanwhile:
        world.finish(zombie)
    assert world.finish(runner) == "done", "who holds the lease is not disturbed"


def test_rule_7_a_conditional_write_must_change_its_rows(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    a_zombie_reports_what_it_staged(make(), nullcontext())

    def whatever_they_are(
        connection: Any, generation: int, attempt: Attempt, before: State, after: State, **values: Any
    ) -> None:
        rows = ledger_attempts._between(generation, attempt.first, attempt.last)
        connection.execute(update(batches).where(*rows).values(state=after, attempt=attempt.id))

    @contextmanager
    def without() -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(ledger_attempts, "require", lambda connection, lease: None)
            patch.setattr(Attempts, "_end", staticmethod(lambda connection, attempt, before, after, **values: None))
            patch.setattr(Attempts, "_set_batches", staticmethod(whatever_they_are))
            yield

    with pytest.raises(AssertionError, match="is not disturbed"):
        a_zombie_reports_what_it_staged(make(), without())


def a_zombie_comes_back_to_commit(world: World) -> None:
    zombie = stopped_at(world, "sink.commit:before", group=1)
    lease_runs_out(world)
    assert world.finish(world.runner(2)) == "done"
    assert world.finish(zombie) == "Fenced"
    world.check()


def test_rule_8_a_take_over_fences_the_sink_first(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    a_zombie_comes_back_to_commit(make())
    monkeypatch.setattr(MemoryStore, "fence", lambda self, epoch: self.disk.state)
    with pytest.raises(AssertionError):
        a_zombie_comes_back_to_commit(make())


@pytest.mark.parametrize("kind", ["memory", "delta"])
def test_rule_8_the_checks_are_made_on_the_snapshot_that_commits(tmp_path: Path, kind: str) -> None:
    def scene() -> None:
        with pytest.MonkeyPatch.context() as patch:
            conformance.test_a_take_over_between_the_checks_and_the_commit_fences(bench(tmp_path, kind), patch)

    scene()
    with pytest.MonkeyPatch.context() as patch:
        if kind == "memory":
            swap = MemoryStore._swap
            patch.setattr(MemoryStore, "_swap", lambda self, step, version, *rest, **named: (
                swap(self, step, version, *rest, **named) or swap(self, step, self.disk.version, *rest, **named)
            ))  # fmt: skip
        else:
            write = DeltaStore._write

            def try_again_blindly(self: DeltaStore, step: str, table: Any, *rest: Any) -> None:
                try:
                    write(self, step, table, *rest)
                except CommitConflict:
                    write(self, step, self._refresh(), *rest)

            patch.setattr(DeltaStore, "_write", try_again_blindly)
        with pytest.raises(BROKEN):
            scene()


@pytest.mark.parametrize(("kind", "store"), [("memory", MemoryStore), ("delta", DeltaStore)])
def test_rule_8_staged_files_are_seen_before_the_commit(
    tmp_path: Path, kind: str, store: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scene() -> None:
        conformance.test_a_missing_staged_file_commits_nothing(bench(tmp_path, kind))
        conformance.test_a_staged_file_of_another_size_commits_nothing(bench(tmp_path, kind))

    scene()
    monkeypatch.setattr(store, "require", lambda self, files: None)
    with pytest.raises(BROKEN):
        scene()


def a_host_whose_clock_is_ahead_waits_too(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.open(f"sqlite:///{file}")
    try:
        generation = ledger.generations.open("clocks", "d", "{}").id
        ledger.leases.acquire(generation, "one", 60)
        hour_ahead = time.time() + 3600
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: hour_ahead)
            with pytest.raises(LeaseHeld):
                ledger.leases.acquire(generation, "two", 60)
    finally:
        ledger.close()


def test_rule_8_leases_use_the_databases_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_host_whose_clock_is_ahead_waits_too(tmp_path / "with.db", monkeypatch)
    monkeypatch.setattr(Database, "now", lambda self, connection: int(time.time() * 1_000_000))
    with pytest.raises(BROKEN):
        a_host_whose_clock_is_ahead_waits_too(tmp_path / "without.db", monkeypatch)


@pytest.mark.parametrize(("kind", "store"), [("memory", MemoryStore), ("delta", DeltaStore)])
def test_rule_9_an_empty_batch_moves_the_frontier(
    tmp_path: Path, kind: str, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    conformance.test_an_empty_group_moves_the_frontier(bench(tmp_path, kind))
    commit = store.commit
    monkeypatch.setattr(store, "commit", lambda self, group: not group.files or commit(self, group))
    with pytest.raises(BROKEN):
        conformance.test_an_empty_group_moves_the_frontier(bench(tmp_path, kind))


def every_grouping_gives_the_same(make: Make, late: str) -> None:
    results = []
    for group in (1, 2, None):
        world = make(0, late=late)
        world.source.records.extend([5, 6, 40, 7, 8, 9, 50, 41, 2, 60, 44, 55])
        drained(world, group)
        results.append(world.result(1000))
    assert results[0] == results[1] == results[2]


def test_rule_11_the_watermark_is_fixed_in_txid_order(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    every_grouping_gives_the_same(make, "drop")
    watermarks = Committer._watermarks

    def once_a_group(self: Committer, group: Any, results: Any, before: int | None) -> Any:
        limits, after = watermarks(self, group, results, before)
        return dict.fromkeys(limits, before), after

    monkeypatch.setattr(Committer, "_watermarks", once_a_group)
    with pytest.raises(AssertionError):
        every_grouping_gives_the_same(make, "drop")


def every_batch_size_gives_the_same(make: Make) -> None:
    results = []
    for size in (1, PER_BATCH, 100):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(model, "PER_BATCH", size)
            world = make(0, late="keep")
            world.source.records.extend([5, 6, 40, 7, 8, 9, 50, 41, 2])
            drained(world)
            results.append(world.result(1000))
    assert results[0] == results[1] == results[2]


def test_rule_11_with_late_kept_ranges_do_not_matter(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    every_batch_size_gives_the_same(make)
    watermarks = Committer._watermarks

    def late_all_the_same(self: Committer, *arguments: Any) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.definition, "late", "drop")
            return watermarks(self, *arguments)

    monkeypatch.setattr(Committer, "_watermarks", late_all_the_same)
    with pytest.raises(AssertionError):
        every_batch_size_gives_the_same(make)


@pytest.mark.parametrize("kind", ["memory", "delta"])
def test_rule_12_what_a_commit_names_is_never_removed(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    conformance.test_staging_that_a_commit_names_is_never_removed(bench(tmp_path, kind))

    def whatever_names_it(self: Any, staging: str) -> None:
        if isinstance(self, DeltaStore):
            shutil.rmtree(self.folder / staging)
        else:
            self.disk.files = {path: 1 for path in self.disk.files if not path.startswith(f"{staging}/")}

    monkeypatch.setattr({"memory": MemoryStore, "delta": DeltaStore}[kind], "remove_staging", whatever_names_it)
    with pytest.raises(BROKEN):
        conformance.test_staging_that_a_commit_names_is_never_removed(bench(tmp_path, kind))


def a_pinned_reader_reads_on(world: World) -> None:
    """Someone reads as of txid 1 while everything older than the newest base is cleaned away."""
    drained(world, group=1)
    store = world.store()
    assert isinstance(store, DeltaStore)
    last = store.state().txid
    staging = store.new_staging()
    path = f"{staging}/base"
    size = world.keep(path, {last: world.result(last)})
    file = StagedFile("base", path, size, 1, last, last)
    store.add_base(Base(1, last, (1,), None, "fold", (path,)), [file])
    with world.ledger.pins.hold(world.generation, 1, "a reader"):
        world.now += 3600 * 1_000_000
        clean(world.ledger, world.generation, store, 0, 0)
        clean(world.ledger, world.generation, store, 0, 0)
        seen = view_of(store, 1)
    assert [found.last_txid for found in seen.partial_files] == [1]


def test_rule_12_nothing_that_a_pin_needs_is_removed(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    a_pinned_reader_reads_on(make(6, DeltaWorld))
    monkeypatch.setattr(Pins, "lowest", lambda self, generation: None)
    with pytest.raises(Refused, match="cleaned away"):
        a_pinned_reader_reads_on(make(6, DeltaWorld))


def everything_is_synced_before_the_mark(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[str] = set()
    fsync = os.fsync
    place = conformance.Bench("delta", folder)
    store = place.handle()
    store.fence(1)
    group = conformance.group(place, store, 1)

    def noted(descriptor: int) -> None:
        synced.add(os.path.realpath(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", noted)
        store.commit(group)
    snapshot = store.snapshot()
    log = store.folder / "_delta_log"
    wanted = [store.folder / file.path for file in snapshot.all_files()]
    wanted += [log, log / f"{snapshot.version:020}.json", wanted[0].parent]
    assert {os.path.realpath(path) for path in wanted} <= synced


@pytest.mark.skipif(sys.platform != "linux", reason="looks up what was synced in /proc")
def test_rule_12_durable_means_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    everything_is_synced_before_the_mark(tmp_path / "with", monkeypatch)
    monkeypatch.setattr(delta, "sync_file", lambda path: None)
    with pytest.raises(AssertionError):
        everything_is_synced_before_the_mark(tmp_path / "without", monkeypatch)
