"""Planning: what is new in the source becomes txids with their ranges in the ledger. Needs no Spark and no lease."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinstream.errors import LedgerError, TwinstreamError
from twinstream.ledger import Generation, Ledger, Planned, PlanRaced
from twinstream.pipeline import Definition
from twinstream.sources.base import Places, is_brought_back
from twinstream.transaction import Range

_TRIES = 20


@dataclass(frozen=True)
class LedgerHistory:
    """The ledger's answers to a source's questions."""

    ledger: Ledger
    generation: Generation

    def last(self) -> Range | None:
        for txid in range(self.generation.last_txid, 0, -1):
            found = self.ledger.batches.get(self.generation.id, txid, txid)[0].range
            if not is_brought_back(found):
                return found
        return None

    def known_folders(self) -> Mapping[str, int]:
        return self.ledger.batches.known_folders(self.generation.id)

    def claimed(self, folder: str) -> set[str]:
        return self.ledger.batches.claimed(self.generation.id, folder)


@dataclass(frozen=True)
class PlanResult:
    """What a planning round did."""

    txids: range
    records: int
    more: bool
    problem: TwinstreamError | None
    warnings: tuple[str, ...] = ()


def plan(
    ledger: Ledger, definition: Definition, generation_id: int, places: Places, batch_records: int, enough: int
) -> PlanResult:
    """Logs the next txids; when another planner was faster, looks again."""
    for _ in range(_TRIES):
        generation = ledger.generations.get(generation_id)
        found = definition.pipeline.source.plan(places, LedgerHistory(ledger, generation), batch_records, enough)
        if not found.ranges and not found.seen_folders:
            return PlanResult(range(0), 0, False, found.problem, found.warnings)
        try:
            txids = ledger.batches.plan(
                generation_id,
                generation.last_txid,
                [Planned(item) for item in found.ranges],
                definition.hash,
                found.seen_folders,
            )
        except PlanRaced:
            continue
        return PlanResult(txids, sum(item.records for item in found.ranges), found.more, found.problem, found.warnings)
    raise LedgerError(
        f"Other planners were faster {_TRIES} times in a row.",
        untouched="Nothing was planned by this one.",
        next_step="Run the command again.",
    )
