"""When a pipeline is left alone: paused by the ledger's journal, or in the hands of a continuous run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinstream.ledger.journal import PAUSED, RESUMED

if TYPE_CHECKING:
    from twinstream.ledger import Ledger


def paused(ledger: Ledger, generation: int) -> str | None:
    """Why the pipeline is paused; None where it is not."""
    newest = ledger.journal.last(generation, (PAUSED, RESUMED))
    return str(newest["detail"]) if newest and newest["kind"] == PAUSED else None


def held(ledger: Ledger, generation: int) -> str | None:
    """Which continuous run streams the pipeline, so that micro-batches leave it alone; None where none does."""
    from twinstream.runtime.supervision import streaming

    run = streaming(ledger, generation)
    return f"The continuous run {run.id} holds it ({run.holder})" if run else None


def pause(ledger: Ledger, generation: int, reason: str) -> None:
    """No micro-batch of this pipeline does anything from now on."""
    ledger.journal.add(generation, PAUSED, reason)


def resume(ledger: Ledger, generation: int, reason: str) -> None:
    """Micro-batches go on."""
    ledger.journal.add(generation, RESUMED, reason)
