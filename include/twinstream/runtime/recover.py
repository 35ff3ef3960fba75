"""Recovery: after any crash the sink says what is committed; the ledger follows, or both stop."""

from __future__ import annotations

from twinstream.errors import Fenced, LedgerSinkMismatch
from twinstream.ledger import Lease, Ledger
from twinstream.sinks.base import SinkState, Store, mismatch


def recover(ledger: Ledger, store: Store, lease: Lease) -> None:
    """Takes the sink over under the lease's epoch and brings the ledger's marks up to what the sink has.

    Looks first and touches nothing when the two disagree in a way that no crash explains.
    """
    compare(ledger, store, lease.generation)
    try:
        store.fence(lease.epoch)
    except Fenced:
        ledger.leases.renew(lease)
        raise older_ledger(store.state().epoch, lease.epoch) from None
    state = compare(ledger, store, lease.generation)
    generation = ledger.generations.get(lease.generation)
    if state.txid > generation.frontier:
        manifests = store.manifests(generation.frontier + 1, state.txid)
        ledger.attempts.committed(lease.generation, manifests, recovered=True)


def compare(ledger: Ledger, store: Store, generation_id: int) -> SinkState:
    """Raises LedgerSinkMismatch unless a crash between two steps of the protocol explains every difference.

    Also right beside a live runner: the ledger is asked before the sink for what the sink must have, and after it for
    what the ledger must have planned.
    """
    frontier = ledger.generations.get(generation_id).frontier
    state = store.state()
    generation = ledger.generations.get(generation_id)
    holder = ledger.leases.holder(generation_id)
    known = holder[1] if holder else 0
    if state.epoch > known:
        raise older_ledger(state.epoch, known)
    if state.txid < frontier:
        raise mismatch(
            f"The ledger has committed up to txid {frontier}, the sink has only {state.txid}: "
            "the sink was rolled back or replaced"
        )
    if state.txid > generation.last_txid:
        raise mismatch(
            f"The sink has txid {state.txid}, the ledger has planned only up to {generation.last_txid}: "
            "the ledger is older than the sink (restored from a backup?)"
        )
    if state.txid == 0:
        return state
    first = min(frontier + 1, state.txid)
    there = store.manifests(first, state.txid)
    if [manifest.txid for manifest in there] != list(range(first, state.txid + 1)):
        raise mismatch(f"The sink has lost manifests between txids {first} and {state.txid}")
    planned = {batch.txid: batch.range_digest for batch in ledger.batches.get(generation_id, first, state.txid)}
    for manifest in there:
        if planned.get(manifest.txid) != manifest.range_digest:
            raise mismatch(f"The sink has committed txid {manifest.txid} with another range than the ledger planned")
    return state


def older_ledger(seen: int, known: int) -> LedgerSinkMismatch:
    """The error for a sink that was taken over under an epoch that the ledger does not know."""
    return mismatch(
        f"The sink has seen epoch {seen}, the ledger only {known}: "
        "the ledger is older than the sink (restored from a backup?)"
    )
