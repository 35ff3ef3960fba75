"""What attempts that ended without a commit left in staging is deleted, by the ledger, once the sink agrees."""

from __future__ import annotations

from twinstream.ledger import Ledger
from twinstream.sinks.base import Store


def remove_leftovers(ledger: Ledger, generation: int, store: Store) -> int:
    """Deletes left-over staging; the sink refuses where it names one of the files. Returns how many attempts had any.

    Only after ledger and sink were seen to agree (`recover.compare`).
    """
    attempts = ledger.attempts.to_clean(generation)
    for attempt in attempts:
        store.remove_staging(attempt.staging)
        ledger.attempts.cleaned(attempt)
    return len(attempts)
