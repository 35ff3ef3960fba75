"""A generation to work on: plans, leases, attempts and commits with few words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import select

from twinstream.ledger import Generation, Lease, Ledger, Planned
from twinstream.ledger.database import Database
from twinstream.ledger.schema import hosts, metadata
from twinstream.transaction import (
    Accounting,
    Attempt,
    Batch,
    Manifest,
    Outcome,
    Range,
    Staged,
    StagedFile,
    State,
    Tally,
    TxidResult,
)

SECOND = 1_000_000


@dataclass
class Clock:
    """The database's clock, moved by hand."""

    now: int = 1_700_000_000 * SECOND

    def __call__(self) -> int:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)


def files(*paths: str, records: int = 10) -> Range:
    """A range of files as FileSource plans them."""
    facts = [{"path": path, "size": 100, "records": records, "fingerprint": f"of {path}"} for path in paths]
    return Range(
        payload={"place": "source", "files": facts},
        records=records * len(paths),
        size=100 * len(paths),
        claims=tuple(f"source/{path}" for path in paths),
        hints={path: [1, 2, 3] for path in paths},
    )


def staged_for(attempt: Attempt) -> Staged:
    """What a successful attempt reports: ten records a txid, one of them dead."""
    return Staged(
        files=(StagedFile("partial", f"{attempt.staging}/part", 5, 9, attempt.first, attempt.last),),
        results=tuple(result_of(txid) for txid in range(attempt.first, attempt.last + 1)),
        seconds=0.5,
    )


def result_of(txid: int) -> TxidResult:
    return TxidResult(
        txid,
        Accounting(emitted=Tally(9, txid, txid), dead=Tally(1, 7, 7), rows_out=9),
        highest_event_time=1000 * txid,
        earliest_closing=1000 * txid - 5,
        digest=Tally(9, 2**64 - txid, txid),
    )


def manifest_of(batch: Batch, attempt: int, epoch: int) -> Manifest:
    """What the sink would keep of a txid."""
    result = result_of(batch.txid)
    return Manifest(
        txid=batch.txid,
        attempt=attempt,
        epoch=epoch,
        range_digest=batch.range_digest,
        range=batch.range,
        batch_time=batch.batch_time,
        highest_event_time=result.highest_event_time,
        watermark=1000 * batch.txid - 100,
        late_before=None,
        accounting=result.accounting,
        digest=result.digest,
        definition_hash="hash",
        files=(f"staging/{attempt}/part",),
        exempt=batch.exempt,
        discard_reason=batch.discard_reason,
    )


class Bench:
    """One generation of one pipeline in a ledger."""

    def __init__(self, ledger: Ledger, clock: Clock, generation: Generation | None = None) -> None:
        self.ledger = ledger
        self.clock = clock
        self.id = (generation or ledger.generations.open("page_views", "hash", "{}")).id

    @classmethod
    def on(cls, ledger: Ledger) -> Bench:
        """A bench under the ledger's own clock."""
        return cls(ledger, Clock())

    @property
    def generation(self) -> Generation:
        return self.ledger.generations.get(self.id)

    def plan(self, *paths: str) -> range:
        """One txid a file."""
        planned = [Planned(files(path)) for path in paths]
        return self.ledger.batches.plan(self.id, self.generation.last_txid, planned, "hash")

    def plan_many(self, count: int) -> range:
        start = self.generation.last_txid
        return self.plan(*(f"day/{number:06}.json" for number in range(start, start + count)))

    def lease(self, holder: str = "runner", seconds: float = 60.0) -> Lease:
        return self.ledger.leases.acquire(self.id, holder, seconds)

    def lease_again(self) -> Lease:
        """The lease as whoever holds it has it."""
        found = self.ledger.leases.holder(self.id)
        assert found is not None
        return Lease(self.id, found[1], found[0], 60.0)

    def start(self, lease: Lease, first: int, last: int) -> Attempt:
        return self.ledger.attempts.start(lease, first, last, f"staging/{first}-{last}")

    def process(self, lease: Lease, first: int, last: int) -> Attempt:
        """Starts an attempt and brings it to processed."""
        attempt = self.start(lease, first, last)
        staged = staged_for(attempt)
        self.ledger.attempts.processed(lease, attempt, staged)
        return replace(attempt, staged=staged, outcome=Outcome.PROCESSED)

    def manifests(self, attempt: Attempt) -> list[Manifest]:
        batches = self.ledger.batches.get(self.id, attempt.first, attempt.last)
        return [manifest_of(batch, attempt.id, attempt.epoch) for batch in batches]

    def commit(self, lease: Lease, first: int, last: int) -> list[Manifest]:
        """Everything from start to the COMMITTED mark."""
        manifests = self.manifests(self.process(lease, first, last))
        self.ledger.attempts.committed(self.id, manifests)
        return manifests

    def states(self) -> list[State]:
        return [batch.state for batch in self.ledger.batches.get(self.id, 1, self.generation.last_txid)]

    def outcomes(self, txid: int) -> list[object]:
        return [attempt["outcome"] for attempt in self.ledger.attempts.of_txid(self.id, txid)]

    def journal(self) -> list[tuple[object, object]]:
        """Kinds and txids, oldest first."""
        return [(entry["kind"], entry["txid"]) for entry in reversed(self.ledger.journal.newest(self.id, 100))]


def content(database: Database) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table that a backup holds."""
    with database.read() as connection:
        return {
            table.name: sorted((tuple(row) for row in connection.execute(select(table))), key=repr)
            for table in metadata.sorted_tables
            if table is not hosts
        }


def txids(batches: Sequence[Batch]) -> list[int]:
    return [batch.txid for batch in batches]
