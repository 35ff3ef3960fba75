"""Committing an attempt: fix the watermarks, commit to the sink in one step, then mark the ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from twinstream.ledger import Generation, Lease, Ledger
from twinstream.pipeline import Definition
from twinstream.runtime.ids.known import IDS
from twinstream.runtime.processor import Processor
from twinstream.sinks.base import GroupCommit, Store
from twinstream.transaction import Attempt, Batch, Manifest, StagedFile, Tally, TxidResult, next_watermark


@dataclass(frozen=True)
class Committer:
    """Commits attempts of one runner, in txid order."""

    definition: Definition
    ledger: Ledger
    store: Store
    processor: Callable[[], Processor]
    lease: Lease

    def commit(self, generation: Generation, batches: Sequence[Batch], attempt: Attempt) -> list[Manifest]:
        """Commits the attempt's txids, which must be the next ones after the generation's frontier."""
        staged = attempt.staged
        assert staged is not None
        assert batches[0].txid == generation.frontier + 1
        late_before, watermarks = self._watermarks(batches, staged.results, generation.watermark)
        tallies, late_files = self._late(batches, attempt, staged.files, staged.results, late_before)
        manifests = []
        files = (*staged.files, *late_files)
        for batch, result in zip(batches, staged.results, strict=True):
            late, late_rows = tallies.get(batch.txid, (Tally(), 0))
            manifests.append(
                Manifest(
                    txid=batch.txid,
                    attempt=attempt.id,
                    epoch=self.lease.epoch,
                    range_digest=batch.range_digest,
                    range=batch.range,
                    batch_time=batch.batch_time,
                    highest_event_time=result.highest_event_time,
                    watermark=watermarks[batch.txid],
                    late_before=late_before[batch.txid] if late_rows else None,
                    accounting=result.accounting.with_late(late, late_rows) if late_rows else result.accounting,
                    digest=result.digest,
                    definition_hash=self.definition.hash,
                    files=tuple(f.path for f in files if f.kind != IDS and f.first_txid <= batch.txid <= f.last_txid),
                    exempt=batch.exempt,
                    discard_reason=batch.discard_reason,
                )
            )
        self.store.commit(GroupCommit(self.lease.epoch, tuple(manifests), files))
        self.ledger.attempts.committed(self.lease.generation, manifests)
        return manifests

    def _watermarks(
        self, batches: Sequence[Batch], results: Sequence[TxidResult], before: int | None
    ) -> tuple[dict[int, int | None], dict[int, int | None]]:
        """The watermark before each txid, which decides what is late in it, and the one after it."""
        late_before: dict[int, int | None] = {}
        after: dict[int, int | None] = {}
        for batch, result in zip(batches, results, strict=True):
            late_before[batch.txid] = None if batch.exempt or self.definition.late == "keep" else before
            before = next_watermark(before, result.highest_event_time, self.definition.delay)
            after[batch.txid] = before
        return late_before, after

    def _late(
        self,
        batches: Sequence[Batch],
        attempt: Attempt,
        files: Sequence[StagedFile],
        results: Sequence[TxidResult],
        late_before: dict[int, int | None],
    ) -> tuple[dict[int, tuple[Tally, int]], Sequence[StagedFile]]:
        """Late records of the group and, where they are put aside, the files that hold them."""
        limits = {
            result.txid: limit
            for result in results
            if (limit := late_before[result.txid]) is not None
            and result.earliest_closing is not None
            and result.earliest_closing <= limit
        }
        tallies = self.processor().late_tallies(files, limits) if limits else {}
        if not tallies or self.definition.late != "side":
            return tallies, ()
        late = [batch for batch in batches if batch.txid in tallies]
        aside = self.processor().stage_late(late, attempt.staging, {b.txid: limits[b.txid] for b in late})
        return tallies, aside
