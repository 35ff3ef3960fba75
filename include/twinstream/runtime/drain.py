"""Draining: the runner that processes and commits everything that is planned, exactly once, whatever happens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from twinstream.errors import (
    CommitConflict,
    DiskFull,
    Fenced,
    GateHeld,
    LeaseHeld,
    LedgerError,
    LedgerSinkMismatch,
    ProcessingFailed,
    SparkLost,
    StagedFileMissing,
    TwinstreamError,
)
from twinstream.ledger import Lease, Ledger
from twinstream.pipeline import Definition
from twinstream.runtime.commit import Committer
from twinstream.runtime.explain import explained, in_our_words, one_line
from twinstream.runtime.heartbeat import Heartbeat, lease_heartbeat
from twinstream.runtime.holder import is_dead, new_holder
from twinstream.runtime.leftovers import remove_leftovers
from twinstream.runtime.processor import Processor
from twinstream.runtime.progress import Progress
from twinstream.runtime.rate import RateController
from twinstream.runtime.recover import recover
from twinstream.runtime.work import Group, WorkList
from twinstream.sinks.base import Store
from twinstream.transaction import Attempt, Batch, Manifest, Outcome, StagedFile, State

ROUND = 2_000
"""How many open txids a runner looks at, at a time."""
STOPPING = (Fenced, LeaseHeld, LedgerError, LedgerSinkMismatch, CommitConflict, DiskFull, SparkLost)
"""Errors that are not the fault of a txid: splitting the group would not help."""


@dataclass(frozen=True)
class RunnerOptions:
    """How a runner works; nothing here changes a result."""

    lease_seconds: float = 60.0
    wait_seconds: float = 0.0
    groups_in_flight: int = 2
    max_batches: int | None = None
    context: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Drained:
    """What a drain did."""

    txids: int = 0
    records: int = 0
    late: int = 0
    dead: int = 0
    duplicate: int = 0
    epoch: int | None = None
    ended: str = ""
    """Why a continuous run came to its end."""


class Runner:
    """Runs one generation under a lease: recovers, processes groups, commits them in txid order."""

    heartbeat: Callable[[Ledger, Lease], Any] = staticmethod(lease_heartbeat)
    pool: Callable[[int], Executor] = ThreadPoolExecutor
    is_dead: Callable[[str], bool] = staticmethod(is_dead)

    def __init__(
        self,
        definition: Definition,
        ledger: Ledger,
        generation: int,
        store: Store,
        processor: Callable[[], Processor],
        rate: RateController,
        options: RunnerOptions,
        progress: Progress,
        after_commit: Callable[[], None] = lambda: None,
        deliver: Callable[[Lease], None] = lambda _lease: None,
    ) -> None:
        self._definition = definition
        self._ledger = ledger
        self._generation = generation
        self._store = store
        self._open_processor = processor
        self._processor: Processor | None = None
        self._rate = rate
        self._options = options
        self._progress = progress
        self._after_commit = after_commit
        self.waits: Callable[[], bool] = lambda: True
        """Asked, while another runner holds the lease, whether to go on waiting for it."""
        self.ending: Callable[[], bool] = lambda: False
        """Asked before a group is started; after a yes what is in flight is committed, and nothing else begins."""
        self._deliver = deliver
        self.drained = Drained()
        self.check: Callable[[], None] = lambda: None
        """Raises Fenced once the lease is lost."""

    def run(self, plan_more: Callable[[], bool]) -> Drained:
        """Drains what is planned, asking for more until nothing new comes."""
        with self.holding() as drain_planned:
            drain_planned()
            while plan_more():
                drain_planned()
        return self.drained

    @contextmanager
    def holding(self) -> Iterator[Callable[[], None]]:
        """Holds the lease, recovered and tidied up; yields what commits everything that is planned by then."""
        lease = self._acquire()
        self.drained.epoch = lease.epoch
        try:
            with in_our_words(), self.heartbeat(self._ledger, lease) as heartbeat:
                self.check = heartbeat.check
                recover(self._ledger, self._store, lease)
                self.remove_leftovers()
                self._deliver(lease)

                def drain_planned() -> None:
                    heartbeat.check()
                    while self._round(lease, heartbeat):
                        pass

                yield drain_planned
        finally:
            self._release(lease)

    def remove_leftovers(self) -> None:
        """Deletes what attempts that ended without a commit left in staging; only after the sink is fenced."""
        remove_leftovers(self._ledger, self._generation, self._store)

    def _acquire(self) -> Lease:
        holder = new_holder()
        deadline = time.monotonic() + self._options.wait_seconds
        told = ""
        while True:
            try:
                return self._ledger.leases.acquire(self._generation, holder, self._options.lease_seconds, self.is_dead)
            except LeaseHeld as error:
                if time.monotonic() >= deadline:
                    raise
                if error.what != told:
                    told = error.what
                    self._progress.note(told)
                if not self.waits():
                    raise
                time.sleep(min(1.0, max(0.05, deadline - time.monotonic())))

    def _release(self, lease: Lease) -> None:
        try:
            self._ledger.leases.release(lease)
        except LedgerError:
            self._progress.note("The lease could not be given back; it runs out by itself.")

    def _round(self, lease: Lease, heartbeat: Heartbeat) -> bool:
        """Works through the open txids; True if there may be more that are planned already."""
        if self.ending():
            return False
        left = ROUND
        if self._options.max_batches is not None:
            left = min(left, self._options.max_batches - self.drained.txids)
        batches = self._ledger.batches.open(self._generation, left) if left > 0 else []
        if not batches:
            return False
        before = self.drained.txids
        _Round(self, lease, heartbeat, batches).work()
        if self.drained.txids == before:
            # Open txids and nothing to do: another runner has them. Ask before looking again.
            self._ledger.leases.renew(lease)
        return self._options.max_batches is None or self.drained.txids < self._options.max_batches

    def processor(self) -> Processor:
        """Opened when it is first needed: a run that only recovers needs no Spark."""
        if self._processor is None:
            self._processor = self._open_processor()
        return self._processor


class _Round:
    """One pass over open txids: several groups in flight, commits in txid order, failed groups split."""

    def __init__(self, runner: Runner, lease: Lease, heartbeat: Heartbeat, batches: list[Batch]) -> None:
        self._runner = runner
        self._ledger = runner._ledger
        self._lease = lease
        self._heartbeat = heartbeat
        self._done: dict[int, Group] = {}
        self._running: dict[Future[Attempt], Group] = {}
        self._blocked_at: int | None = None
        self._blocked_by: TwinstreamError | None = None
        self._redone: set[int] = set()
        self._work = WorkList(self._usable(batches), runner._rate)

    def work(self) -> None:
        pool = self._runner.pool(self._runner._options.groups_in_flight)
        try:
            while True:
                self._heartbeat.check()
                self._start(pool)
                self._commit()
                if not self._running:
                    if self._startable() is None:
                        break
                    continue
                finished, _ = wait(self._running, timeout=1.0, return_when=FIRST_COMPLETED)
                for future in finished:
                    self._finish(future)
        except BaseException as error:
            # On a full disk the others clean up after themselves too.
            pool.shutdown(wait=isinstance(error, DiskFull), cancel_futures=True)
            raise
        pool.shutdown()
        if self._blocked_by is not None:
            raise self._blocked_by

    def _usable(self, batches: list[Batch]) -> list[Batch]:
        """Sorts out what is processed already, and stops before a txid that is held."""
        usable = []
        whole: dict[int, list[Batch]] = {}
        for batch in batches:
            if batch.state == State.HELD:
                self._block(batch.txid, held(batch))
                break
            usable.append(batch)
            if batch.state == State.PROCESSED and batch.attempt is not None:
                whole.setdefault(batch.attempt, []).append(batch)
        for identity, members in whole.items():
            attempt = self._ledger.attempts.find(identity)
            if (attempt.first, attempt.last) == (members[0].txid, members[-1].txid) and attempt.staged is not None:
                self._done[attempt.first] = Group(tuple(members), attempt)
            else:
                self._ledger.attempts.give_up(self._lease, attempt, Outcome.ABANDONED, "its group is not whole")
                usable = [replace(b, state=State.PLANNED) if b.attempt == identity else b for b in usable]
        return usable

    def _startable(self) -> int | None:
        first = None if self._runner.ending() else self._work.next_first()
        if first is None or (self._blocked_at is not None and first > self._blocked_at):
            return None
        return first

    def _start(self, pool: Executor) -> None:
        while len(self._running) < self._runner._options.groups_in_flight:
            first = self._startable()
            if first is None:
                return
            if self._runner.processor().in_order and (self._running or first != self._frontier() + 1):
                return
            group = self._work.take()
            watermark = self._ledger.generations.get(self._lease.generation).watermark
            self._runner._progress.started(group.batches)
            self._running[pool.submit(self._process, group, watermark)] = group

    def _frontier(self) -> int:
        return self._ledger.generations.get(self._lease.generation).frontier

    def _process(self, group: Group, watermark: int | None) -> Attempt:
        staging = self._runner._store.new_staging()
        attempt = self._ledger.attempts.start(
            self._lease, group.first, group.last, staging, self._runner._options.context
        )
        try:
            staged = self._runner.processor().process(group.batches, attempt.staging, watermark)
            self._ledger.attempts.processed(self._lease, attempt, staged)
        except BaseException as error:
            told = explained(error) or error
            if isinstance(told, DiskFull):
                # The ledger, too, needs room to note what happened.
                self._runner._store.remove_staging(attempt.staging)
            outcome = Outcome.FENCED if isinstance(told, Fenced) else Outcome.FAILED
            self._ledger.attempts.give_up(self._lease, attempt, outcome, one_line(told))
            if told is error:
                raise
            raise told from error
        return replace(attempt, staged=staged, outcome=Outcome.PROCESSED)

    def _finish(self, future: Future[Attempt]) -> None:
        group = self._running.pop(future)
        error = future.exception()
        if error is None:
            attempt = future.result()
            assert attempt.staged is not None
            self._done[group.first] = Group(group.batches, attempt)
            self._runner._rate.observe(sum(b.range.size for b in group.batches), attempt.staged.seconds)
            return
        if not isinstance(error, Fenced | LedgerError):
            self._runner.remove_leftovers()
        if isinstance(error, STOPPING) or not isinstance(error, Exception):
            raise error
        elif len(group.batches) > 1:
            self._work.put_back(*group.halves())
        else:
            self._block(group.first, failed(group.first, error))

    def _commit(self) -> None:
        while True:
            generation = self._ledger.generations.get(self._lease.generation)
            group = self._done.pop(generation.frontier + 1, None)
            if group is None:
                return
            assert group.attempt is not None
            assert group.attempt.staged is not None
            started = time.monotonic()
            committer = Committer(
                self._runner._definition, self._ledger, self._runner._store, self._runner.processor, self._lease
            )
            try:
                self._runner._store.require(group.attempt.staged.files)
                refused = self._ask_gate(group)
                if refused is not None:
                    self._refuse(group, refused)
                    continue
                manifests = committer.commit(generation, group.batches, group.attempt)
            except StagedFileMissing as error:
                self._do_again(group, error)
                continue
            self._count(manifests)
            self._runner._progress.committed(manifests, time.monotonic() - started)
            self._runner._deliver(self._lease)
            self._runner._after_commit()

    def _ask_gate(self, group: Group) -> str | None:
        """What the gate has against the group; released and discarded txids are not shown to it."""
        batch = group.batches[0]
        if self._runner._definition.pipeline.gate is None or batch.waived or batch.discard_reason is not None:
            return None
        assert group.attempt is not None
        assert group.attempt.staged is not None
        return self._said_by_gate(group.attempt.staged.files)

    def _said_by_gate(self, files: Sequence[StagedFile]) -> str | None:
        name = self._runner._definition.name
        try:
            said = self._runner.processor().gate(files)
        except Exception as error:
            raise explained(error) or gate_failed(name, one_line(error)) from error
        if said is not None and not isinstance(said, str):
            raise gate_failed(name, f"it returned {said!r:.100}, which is neither a text nor None")
        return said

    def _refuse(self, group: Group, reason: str) -> None:
        """The gate refused a group: find the txid at fault, and hold it."""
        assert group.attempt is not None
        if len(group.batches) > 1:
            self._ledger.attempts.give_up(self._lease, group.attempt, Outcome.ABANDONED, f"gate: {reason}")
            self._work.put_back(*(Group(half.batches) for half in group.halves()))
        else:
            self._ledger.attempts.hold(self._lease, group.attempt, reason)
            self._block(group.first, held(replace(group.batches[0], held_reason=reason)))

    def _do_again(self, group: Group, error: StagedFileMissing) -> None:
        """Staged files are gone: the txids are processed once more, and only once."""
        assert group.attempt is not None
        self._ledger.attempts.give_up(self._lease, group.attempt, Outcome.FAILED, one_line(error))
        if group.first in self._redone:
            raise error
        self._redone.add(group.first)
        self._runner._progress.note(error.what)
        self._work.put_back(Group(group.batches))

    def _block(self, txid: int, error: TwinstreamError) -> None:
        if self._blocked_at is None or txid < self._blocked_at:
            self._blocked_at, self._blocked_by = txid, error

    def _count(self, manifests: Sequence[Manifest]) -> None:
        drained = self._runner.drained
        drained.txids += len(manifests)
        for manifest in manifests:
            drained.records += manifest.accounting.read.count
            drained.late += manifest.accounting.late.count
            drained.dead += manifest.accounting.dead.count
            drained.duplicate += manifest.accounting.duplicate.count


def held(batch: Batch) -> GateHeld:
    """The error that tells of a held txid."""
    return GateHeld(
        f"Txid {batch.txid} is held: {batch.held_reason}.",
        untouched="Everything before it is committed, nothing is lost; the frontier stays.",
        next_step="Let it pass with `twinstream release`, or give it up with `twinstream discard`, with a reason.",
    )


def gate_failed(name: str, why: str) -> ProcessingFailed:
    """The error that tells of a gate that gave no answer."""
    return ProcessingFailed(
        f"The gate of {name} failed: {why}.",
        untouched="What it was asked about is processed and waits; nothing of it is committed.",
        next_step="Mend the gate in the definition, then run `twinstream drain` again.",
    )


def failed(txid: int, error: BaseException) -> TwinstreamError:
    """The error that tells of a txid that cannot be processed."""
    if isinstance(error, TwinstreamError):
        error.what = error.what if f"xid {txid}" in error.what else f"Txid {txid}: {error.what}"
        return error
    return ProcessingFailed(
        f"Txid {txid} cannot be processed: {one_line(error)}",
        untouched="Everything before it is committed; nothing of it is.",
        next_step="Mend the cause and run `twinstream drain` again, or give the txid up with `twinstream discard`.",
    )
