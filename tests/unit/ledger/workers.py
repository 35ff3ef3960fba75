"""What other processes do to a ledger in the tests: real ones, all let go at the same moment."""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing.synchronize import Barrier
from typing import Any

from tests.unit.ledger.bench import files, manifest_of, staged_for
from twinstream.errors import Fenced, LeaseHeld
from twinstream.ledger import Ledger, Planned, PlanRaced

PROCESSES = 4
SECONDS = 120
_barriers: list[Barrier] = []


def at_once(work: Callable[..., Any], *args: Any) -> list[Any]:
    """Runs `work(number, go, *args)` in four processes at once and gives back what each returned."""
    futures = [_crew().submit(_run, work, number, args) for number in range(PROCESSES)]
    return [future.result(2 * SECONDS) for future in futures]


@cache
def _crew() -> ProcessPoolExecutor:
    """Started anew, not forked; kept for the next test, because starting them takes seconds."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(PROCESSES, context, _join, (context.Barrier(PROCESSES),))


def _join(barrier: Barrier) -> None:
    _barriers.append(barrier)


def _run(work: Callable[..., Any], number: int, args: tuple[Any, ...]) -> Any:
    return work(number, _barriers[0], *args)


def open_generation(number: int, go: Barrier, url: str) -> str:
    go.wait(SECONDS)
    ledger = Ledger.open(url)
    opened = ledger.generations.open("page_views", "hash", "{}")
    ledger.close()
    return opened.name


def build_generation(number: int, go: Barrier, url: str) -> tuple[str, str]:
    """The definition asked for and the one of the generation that came back."""
    ledger = Ledger.open(url)
    go.wait(SECONDS)
    built = ledger.generations.build("page_views", f"hash {number}", "{}")
    ledger.close()
    return f"hash {number}", built.definition_hash


def plan_all(number: int, go: Barrier, url: str, generation: int, names: list[str]) -> tuple[list[int], int]:
    """Plans whatever of the shared list has no txid yet, a few files at a time; the txids it won, the races it lost."""
    ledger = Ledger.open(url)
    chance = random.Random(number)
    won: list[int] = []
    lost = 0
    go.wait(SECONDS)
    while True:
        last = ledger.generations.get(generation).last_txid
        claimed = ledger.batches.claimed(generation, "source/day")
        left = [name for name in names if name not in claimed]
        if not left:
            ledger.close()
            return won, lost
        take = [Planned(files(f"day/{name}")) for name in left[: chance.randint(1, 5)]]
        try:
            won += ledger.batches.plan(generation, last, take, "hash")
        except PlanRaced:
            lost += 1


def compete(number: int, go: Barrier, url: str, generation: int, stay: float) -> list[tuple[int, int, int]]:
    """Takes the lease again and again; epoch, and from when to when it was held, by the machine's clock."""
    ledger = Ledger.open(url)
    held: list[tuple[int, int, int]] = []
    holder = f"runner {number} of {os.getpid()}"
    go.wait(SECONDS)
    end = time.monotonic() + stay
    while time.monotonic() < end:
        try:
            lease = ledger.leases.acquire(generation, holder, 30.0)
        except LeaseHeld:
            time.sleep(0.001)
            continue
        since = time.monotonic_ns()
        ledger.leases.renew(lease)
        time.sleep(0.002)
        until = time.monotonic_ns()
        ledger.leases.release(lease)
        held.append((lease.epoch, since, until))
    ledger.close()
    return held


def attempt_all(number: int, go: Barrier, url: str, generation: int, last: int) -> dict[str, int]:
    """A runner that takes over at will, and starts, processes and marks whatever it can: chaos on purpose."""
    ledger = Ledger.open(url)
    chance = random.Random(number)
    counts = {"fenced": 0, "committed": 0, "took": 0}
    go.wait(SECONDS)
    while True:
        frontier = ledger.generations.get(generation).frontier
        if frontier == last:
            ledger.close()
            return counts
        lease = ledger.leases.acquire(generation, f"runner {number}", 30.0, is_dead=lambda _: True)
        counts["took"] += 1
        try:
            while frontier < last:
                end = min(last, frontier + chance.randint(1, 4))
                attempt = ledger.attempts.start(lease, frontier + 1, end, "staging")
                time.sleep(chance.random() * 0.01)
                ledger.attempts.processed(lease, attempt, staged_for(attempt))
                batches = ledger.batches.get(generation, frontier + 1, end)
                ledger.leases.renew(lease)
                if chance.random() < 0.7:
                    ledger.attempts.committed(
                        generation, [manifest_of(batch, attempt.id, lease.epoch) for batch in batches]
                    )
                    counts["committed"] += 1
                frontier = ledger.generations.get(generation).frontier
        except Fenced:
            counts["fenced"] += 1
            time.sleep(chance.random() * 0.4)
