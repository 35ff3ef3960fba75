"""Cleaning: the only deleter. It goes by the ledger and the sink's snapshot, and never below a pin or the retention."""

from __future__ import annotations

import time
from dataclasses import dataclass

from twinstream.failpoints import durable
from twinstream.ledger import Ledger
from twinstream.runtime.leftovers import remove_leftovers
from twinstream.runtime.recover import compare
from twinstream.sinks.base import Base
from twinstream.sinks.delta import DeltaStore
from twinstream.sinks.snapshot import LiveFile, read_bases

GRACE_SECONDS = 3600.0
"""How long a file that no snapshot names any more stays for readers that hold an older snapshot."""
UNNAMED_SECONDS = 24 * 3600.0
"""A file that no snapshot ever named may be somebody's work in progress for so long."""


@dataclass(frozen=True)
class Cleaned:
    """What a cleaning did."""

    kept_from: int
    removed: int
    deleted: int
    leftovers: int


def clean(
    ledger: Ledger,
    generation: int,
    store: DeltaStore,
    retain_seconds: float,
    grace_seconds: float = GRACE_SECONDS,
    *,
    produces: bool = False,
) -> Cleaned:
    """Takes superseded partials and bases out of the table, and deletes what was taken out long enough ago.

    With `produces` what was not sent to the pipeline's topic yet stays. Touches nothing if ledger and sink disagree: a
    ledger older than the sink would call live files left over.
    """
    compare(ledger, store, generation)
    snapshot = store.snapshot()
    bases = {base.number: base for base in read_bases(store.folder, snapshot)}
    most = store.produced() if produces else snapshot.state.txid
    settled = [base for base in bases.values() if base.frontier <= most]
    keep = _oldest_to_keep(ledger, generation, settled, retain_seconds)
    removed: dict[str, list[LiveFile]] = {}
    floor = snapshot.kept_from
    if keep is not None:
        kept = [base for base in bases.values() if base.number >= keep.number]
        needed = {part for base in kept for part in base.parts}
        floor = max(floor, min(base.frontier for base in kept))
        removed = {
            "partial": [f for f in snapshot.files.get("partial", ()) if f.last_txid and f.last_txid <= floor],
            "base": [f for f in snapshot.files.get("base", ()) if f.base not in needed],
        }
    gone = [file for files in removed.values() for file in files]
    if keep is not None and gone:
        ledger.pins.remove_later(generation, [file.path for file in gone], grace_seconds)
        store.replace(removed, [], {"kept": floor})
    ledger.pins.remove_later(generation, _unnamed(ledger, generation, store), grace_seconds)
    return Cleaned(
        kept_from=floor,
        removed=len(gone),
        deleted=_delete(ledger, generation, store),
        leftovers=remove_leftovers(ledger, generation, store),
    )


def _oldest_to_keep(ledger: Ledger, generation: int, bases: list[Base], retain_seconds: float) -> Base | None:
    """The newest base that is old enough, so that everything younger than the retention stays readable.

    A repair's base may stand at a lower txid than the bases before it.
    """
    limit = ledger.pins.lowest(generation)
    cutoff = int((time.time() - retain_seconds) * 1_000_000)
    settled = [
        base
        for base in bases
        if (limit is None or base.frontier <= limit)
        and ledger.batches.committed_before(generation, base.frontier, cutoff)
    ]
    return max(settled, key=lambda base: base.number) if settled else None


def _delete(ledger: Ledger, generation: int, store: DeltaStore) -> int:
    """Deletes files whose time has come, unless a snapshot names them after all."""
    due = ledger.pins.to_delete(generation)
    if not due:
        return 0
    live = {file.path for file in store.snapshot().all_files()}
    for path in due:
        if path not in live:
            with durable("clean.delete"):
                (store.folder / path).unlink(missing_ok=True)
    ledger.pins.deleted(generation, due)
    return len([path for path in due if path not in live])


def _unnamed(ledger: Ledger, generation: int, store: DeltaStore) -> list[str]:
    """Old files that no snapshot names and no attempt waits to commit: joined notes, what zombies wrote too late."""
    cutoff = time.time() - UNNAMED_SECONDS
    old = [path for path in (store.folder / "_data").rglob("*") if path.is_file() and path.stat().st_mtime < cutoff]
    waiting = tuple(f"{attempt.staging}/" for attempt in ledger.attempts.waiting(generation))
    named = {file.path for file in store.snapshot().all_files()}
    paths = [path.relative_to(store.folder).as_posix() for path in old]
    return [path for path in paths if path not in named and not path.startswith(waiting)]
