"""The generations of a pipeline: built beside the current one, promoted, dropped, and brought back from the sink."""

from __future__ import annotations

import shutil

from twinstream.engine.drain import DrainRequest, drain
from twinstream.engine.opened import Opened
from twinstream.errors import Refused
from twinstream.failpoints import durable
from twinstream.ledger import Generation, Planned
from twinstream.ledger.generations import BUILDING
from twinstream.ledger.rebuild import rebuild as rebuild_ledger
from twinstream.pipeline import Definition
from twinstream.runtime.holder import is_dead
from twinstream.runtime.progress import Progress
from twinstream.sinks.base import mismatch
from twinstream.sinks.delta import DeltaStore


def build(opened: Opened, name: str, request: DrainRequest, progress: Progress) -> Generation:
    """A new generation from the whole source beside the current one, which readers go on to see.

    Where there is none yet, the first one is drained.
    """
    definition = opened.definition(name)
    current = opened.ledger.generations.current(name)
    if current is None:
        drain(opened, definition, opened.generation(definition, create=True), request, progress)
        return opened.generation(definition)
    generation = opened.ledger.generations.build(name, definition.hash, definition.text)
    _plan_reinjected(opened, definition, current, generation)
    drain(opened, definition, generation, request, progress)
    return opened.ledger.generations.get(generation.id)


def _plan_reinjected(opened: Opened, definition: Definition, current: Generation, generation: Generation) -> None:
    """What people brought back in the current generation belongs to the new one too."""
    batches = opened.ledger.batches
    for batch in batches.reinjected(current.id):
        if all(batches.claim_of(generation.id, claim) is None for claim in batch.range.claims):
            last = opened.ledger.generations.get(generation.id).last_txid
            again = Planned(batch.range, exempt=batch.exempt)
            batches.plan(generation.id, last, [again], definition.hash, why=("reinjected", "replay"))


def built(opened: Opened, name: str) -> Generation | None:
    """The generation that is being built, if there is one."""
    return next((one for one in opened.ledger.generations.of(name) if one.state == BUILDING), None)


def promote(opened: Opened, name: str, *, unproven: bool) -> Generation:
    """Makes the generation that was built the one that readers see; a no-op where that is done already.

    Refused, unless `unproven` is asked for, as long as no reconciliation at its frontier has found it equal.
    """
    definition = opened.definition(name)
    new = built(opened, name)
    if new is None:
        return opened.generation(definition)
    if not unproven and not _is_proven(opened, new):
        raise Refused(
            f"Generation {new.number} of {name} is not proven: no reconciliation as of txid {new.frontier} "
            "has found it equal to the batch.",
            untouched="Readers see the generation that they saw before.",
            next_step=f"Run `twinstream replay {name}`, which reconciles before it promotes.",
        )
    opened.ledger.generations.promote(new)
    return opened.generation(definition)


def _is_proven(opened: Opened, new: Generation) -> bool:
    return any(
        run.frontier == new.frontier and not run.scope and (run.result or {}).get("verdict") != "different"
        for run in opened.ledger.runs.done(new.id, "reconcile")
    )


def drop(opened: Opened, name: str, number: int) -> Generation:
    """Deletes what a generation that readers do not see any more has left behind."""
    definition = opened.definition(name)
    generation = opened.ledger.generations.drop(name, number)
    for folder in (
        opened.tables(definition) / generation.name,
        opened.settings.home / "batch" / name / generation.name,
    ):
        with durable("drop.delete"):
            shutil.rmtree(folder, ignore_errors=True)
    return generation


def rebuild(opened: Opened, name: str) -> int:
    """Brings a ledger that is lost or older than the sink up to what the sink has."""
    definition = opened.definition(name)
    folder = opened.tables(definition)
    found = [path.name for path in folder.glob("g*-*")] if folder.is_dir() else []
    if not found:
        raise Refused(f"There is no table of {name} below {folder}.", next_step="Nothing to rebuild from.")
    newest = max(found, key=lambda one: int(one[1:].split("-")[0]))
    store = DeltaStore(folder / newest, newest, {})
    state = store.state()
    manifests = store.manifests(1, state.txid)
    if len(manifests) != state.txid:
        raise mismatch(f"The sink has only {len(manifests)} of {state.txid} manifests")
    known = {generation.name: generation for generation in opened.ledger.generations.of(name)}
    generation = known.get(newest)
    if generation is None:
        number, uid = newest[1:].split("-", 1)
        seen = manifests[-1].definition_hash if manifests else definition.hash
        generation = opened.ledger.generations.adopt(name, int(number), uid, seen, definition.text)
    return rebuild_ledger(opened.ledger.database, generation.id, manifests, state.epoch, is_dead)
