"""Batch results that nothing needs any more are deleted; what they proved is in reports and certificates."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from twinstream.batch.recompute import KIND
from twinstream.failpoints import durable
from twinstream.ledger import Ledger

RECONCILE = "reconcile"


def clean_batches(ledger: Ledger, generation: int, home: Path, retain_seconds: float) -> int:
    """Deletes the tables of recomputations that ended before the retention, but for those still of use."""
    cutoff = int((time.time() - retain_seconds) * 1_000_000)
    old = [run for run in ledger.runs.ended(generation, KIND) if (run.ended_at or 0) <= cutoff]
    useful = _useful(ledger, generation)
    folders = [home / run.folder for run in old if run.folder and run.id not in useful]
    gone = [folder for folder in folders if folder.is_dir()]
    for folder in gone:
        with durable("clean.batch"):
            shutil.rmtree(folder, ignore_errors=True)
    return len(gone)


def _useful(ledger: Ledger, generation: int) -> set[int]:
    """What is served and repaired with, and what a quick reconciliation goes on from."""
    whole = [run for run in ledger.runs.done(generation, KIND) if not run.scope]
    compared = [run.frontier for run in ledger.runs.done(generation, RECONCILE) if not run.scope][:1]
    highest = max((run.frontier for run in whole), default=0)
    return {run.id for run in whole if run.frontier in (highest, *compared)}
