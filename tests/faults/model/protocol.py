"""Everyone at work on one pipeline, in any order: what Hypothesis may do to the world, and what must hold after it."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.faults.model.world import World, copy_ledger


class Protocol(RuleBasedStateMachine):
    """Runners, planners, folds, cleaners and people, killed and resumed at any durable step."""

    world_class: ClassVar[type[World]] = World
    template: ClassVar[Path]
    total = 0

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(prefix="twinstream-model-")
        self.world = self.world_class(Path(self._folder.name), self.template)
        self.backup: Path | None = None
        self.restored = False
        self.checked = 0

    def teardown(self) -> None:
        try:
            self.world.settle()
        finally:
            type(self).total += self.world.steps
            self.world.close()
            self._folder.cleanup()

    def alive(self) -> list[Any]:
        return [actor for actor in self.world.actors if actor.running]

    @rule(times=st.lists(st.integers(0, 30), min_size=1, max_size=8))
    def produce(self, times: list[int]) -> None:
        """Records whose event times wander, so that some are late."""
        base = len(self.world.source.records)
        self.world.source.records.extend(base + time - 10 for time in times)

    @rule(
        group=st.sampled_from([None, 1, 2, 5]), in_flight=st.integers(1, 3), limit=st.sampled_from([None, None, 1, 2])
    )
    def start_runner(self, group: int | None, in_flight: int, limit: int | None) -> None:
        if len(self.alive()) < 4:
            self.world.runner(group, in_flight, limit)

    @rule()
    def start_planner(self) -> None:
        self.world.planner()

    @rule()
    def start_fold(self) -> None:
        self.world.folder_actor()

    @rule()
    def start_cleaner(self) -> None:
        self.world.cleaner()

    @rule(which=st.integers(0, 9), count=st.integers(1, 150))
    def resume(self, which: int, count: int) -> None:
        alive = self.alive()
        if alive:
            self.world.step(alive[which % len(alive)], count)

    @rule(seed=st.integers(0, 2**32), turns=st.integers(100, 600))
    def interleave(self, seed: int, turns: int) -> None:
        """Everyone at once: now and then one is killed, another starts, and time passes."""
        chance = random.Random(seed)
        for turn in range(turns):
            alive = self.alive()
            if len(alive) < 2 or chance.random() < 0.01:
                self.world.source.records.extend(
                    len(self.world.source.records) + chance.randint(-10, 20) for _ in range(chance.randint(0, 4))
                )
                self.world.runner(chance.choice([None, 1, 2]), chance.randint(1, 3))
            elif chance.random() < 0.01:
                self.world.kill(chance.choice(alive))
            else:
                self.world.step(chance.choice(alive))
            if chance.random() < 0.01:
                self.world.now += chance.randint(1, 12) * 1_000_000
            if turn % 25 == 0:
                self.world.check()

    @rule(which=st.integers(0, 9))
    def kill(self, which: int) -> None:
        alive = self.alive()
        if alive:
            self.world.kill(alive[which % len(alive)])

    @rule(seconds=st.integers(1, 30))
    def time_passes(self, seconds: int) -> None:
        self.world.now += seconds * 1_000_000

    @rule(seconds=st.integers(1, 3600))
    def the_clock_jumps_back(self, seconds: int) -> None:
        self.world.now -= seconds * 1_000_000

    @rule(value=st.booleans())
    def holders_are_believed_dead(self, value: bool) -> None:
        self.world.believed_dead = value

    @precondition(lambda self: self.world.source.records)
    @rule(which=st.integers(0, 1000))
    def a_record_cannot_be_processed(self, which: int) -> None:
        records = self.world.source.records
        self.world.poisoned = {records[which % len(records)]}

    @rule()
    def it_can_again(self) -> None:
        self.world.poisoned.clear()

    @rule(txid=st.integers(1, 12))
    def the_gate_refuses(self, txid: int) -> None:
        self.world.held.add(txid)

    @rule(action=st.sampled_from(["release", "discard"]), txid=st.integers(1, 12))
    def a_person_decides(self, action: str, txid: int) -> None:
        self.world.decide(action, txid)

    @rule(which=st.integers(0, 1000))
    def a_staged_file_is_lost(self, which: int) -> None:
        """Not between the moment when files are seen to be there and their commit: only readers can notice that."""
        if any(actor.at in ("sink.commit:before", "sink.base:before") for actor in self.alive()):
            return
        staged = sorted(set(self.world.disk.files) - self.world.disk.live)
        if staged:
            self.world.lose(staged[which % len(staged)])

    @precondition(lambda self: not self.alive())
    @rule()
    def back_up_the_ledger(self) -> None:
        self.backup = Path(self._folder.name) / "backup.db"
        copy_ledger(self.world.file, self.backup)

    @precondition(lambda self: self.backup is not None)
    @rule(rebuild=st.booleans())
    def restore_the_old_ledger(self, rebuild: bool) -> None:
        for actor in self.world.actors:
            self.world.kill(actor)
        assert self.backup is not None
        self.world.swap_ledger(self.backup)
        self.restored = True
        if rebuild:
            self.world.rebuild()
            self.restored = False

    @invariant()
    def every_record_is_there_exactly_once(self) -> None:
        self.world.check()

    @invariant()
    def the_ledger_follows_the_sink(self) -> None:
        self.checked += 1
        if not self.restored and self.checked % 4 == 0:
            self.world.check_ledger()
