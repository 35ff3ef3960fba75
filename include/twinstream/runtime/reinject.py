"""Reinjecting: records that were dead letters or late, mended by a person, come back as a txid of their own."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from twinstream.errors import Refused
from twinstream.failpoints import durable
from twinstream.ledger import Ledger, Planned, PlanRaced
from twinstream.pipeline import Definition
from twinstream.sinks.sync import sync_file, sync_folder
from twinstream.sources.base import Places
from twinstream.sources.files import SUFFIXES
from twinstream.sources.scan import fingerprint

_TRIES = 20


@dataclass(frozen=True)
class Reinjected:
    """The txid that brings the records back."""

    txid: int
    records: int


def reinject(
    ledger: Ledger, definition: Definition, generation: int, places: Places, file: Path, reason: str, count_late: bool
) -> Reinjected:
    """Plans the records of `file` as the next txid; the same content cannot come back twice."""
    source = definition.pipeline.source.brought_back
    if not file.is_file():
        raise Refused(f"There is no file {file}.", next_step="Export records with `twinstream dead P --export FILE`.")
    suffix = next((suffix for suffix in SUFFIXES[source.format] if file.name.endswith(suffix)), None)
    if suffix is None:
        raise Refused(
            f"{file.name} is not a {source.format} file.", next_step=f"Name it …{SUFFIXES[source.format][0]}."
        )
    name = f"{fingerprint(file)}{suffix}"
    known = ledger.batches.claim_of(generation, f"reinjected/{name}")
    if known is not None:
        raise Refused(f"These records were reinjected before, as txid {known}.", next_step="Nothing to do.")
    _keep(file, places.reinjected / name)
    found = source.range_of(places.reinjected, name)
    for _ in range(_TRIES):
        last = ledger.generations.get(generation).last_txid
        try:
            txids = ledger.batches.plan(
                generation, last, [Planned(found, exempt=count_late)], definition.hash, why=("reinjected", reason)
            )
        except PlanRaced:
            if ledger.batches.claim_of(generation, f"reinjected/{name}") is not None:
                raise Refused("These records are being reinjected by another command.") from None
            continue
        return Reinjected(txids[0], found.records)
    raise Refused("Other planners kept being faster.", next_step="Run the command again.")


def _keep(file: Path, target: Path) -> None:
    """Copies the file to where ranges can rely on it; it appears whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        return
    temporary = target.with_name(f".{target.name}.tmp")
    with durable("reinject.copy"):
        shutil.copyfile(file, temporary)
        sync_file(temporary)
        temporary.replace(target)
        sync_folder(target.parent)
