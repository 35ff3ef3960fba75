"""Repair from end to end: the finding looked at again, the batch added as a base, and the proof that it helped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinstream.batch.recompute import RUN_SECONDS, check_frontier
from twinstream.batch.serve import newest_batch
from twinstream.engine import Engine
from twinstream.errors import LedgerSinkMismatch, Refused, RepairFailed
from twinstream.ledger import Generation
from twinstream.ledger.runs import Wanted
from twinstream.pipeline import Definition
from twinstream.reconcile.reconcile import Reconciler
from twinstream.reconcile.repair import Mender
from twinstream.reconcile.result import Difference, Reconciliation, Verdict
from twinstream.runtime.heartbeat import run_heartbeat
from twinstream.runtime.holder import is_dead, new_holder
from twinstream.runtime.progress import Progress
from twinstream.sinks.base import Base

KIND = "repair"
_HIDDEN = {
    Difference.NON_DETERMINISTIC: "the batch differs from itself, so it is no better than the stream",
    Difference.DEFINITION_CHANGED: "the definition has changed; a repair would mix two definitions in one result",
    Difference.SOURCE_CHANGED: "the source has changed since the stream read it; a repair would hide that",
}
"""Causes that a repair must not paint over."""


@dataclass(frozen=True)
class Repaired:
    """What a repair did: the finding before it and, unless it was a dry run, the proof after it."""

    before: Reconciliation
    base: int | None = None
    after: Reconciliation | None = None


@dataclass(frozen=True)
class Repairer:
    """Mends what reconciliation found, and takes it back."""

    engine: Engine
    progress: Progress

    def repair(
        self,
        name: str,
        frontier: int | None = None,
        *,
        dry_run: bool = False,
        force: bool = False,
        context: Mapping[str, str] | None = None,
    ) -> Repaired:
        """Mends the result at a frontier; with `dry_run` only says what would change."""
        definition = self.engine.definition(name)
        generation = self.engine.any_generation(definition)
        at = check_frontier(generation, frontier)
        if dry_run:
            return Repaired(self._reconciled(name, at, context))
        wanted = Wanted(generation.id, KIND, at, definition.hash, {})
        ledger = self.engine.ledger
        run = ledger.runs.start(wanted, new_holder(), RUN_SECONDS, is_dead=is_dead, alone=True, context=context)
        try:
            with run_heartbeat(ledger, run, RUN_SECONDS), ledger.pins.hold(generation.id, at, KIND):
                done = self._mend(definition, generation, at, force, context)
        except Exception as error:
            ledger.runs.fail(run, str(error).splitlines()[0][:500])
            raise
        ledger.runs.finish(run, {"base": done.base, "before": done.before.id, "after": done.after and done.after.id})
        return done

    def undo(self, name: str, *, context: Mapping[str, str] | None = None) -> Base:
        """Brings back what was served before the last repair; one that was killed half-way is finished."""
        definition = self.engine.definition(name)
        generation = self.engine.generation(definition)
        wanted = Wanted(generation.id, KIND, generation.frontier, definition.hash, {"undo": True})
        ledger = self.engine.ledger
        run = ledger.runs.start(wanted, new_holder(), RUN_SECONDS, is_dead=is_dead, alone=True, context=context)
        try:
            with run_heartbeat(ledger, run, RUN_SECONDS):
                mender = self._mender(definition, generation)
                repair = (run.result or {}).get("undoing") or mender.last_repair()
                ledger.runs.note(run, {"undoing": repair})
                base = mender.undo(repair)
                self._publish(name)
        except Exception as error:
            ledger.runs.fail(run, str(error).splitlines()[0][:500])
            raise
        ledger.runs.finish(run, {"undone": repair, "base": base.number})
        return base

    def _publish(self, name: str) -> None:
        try:
            self.engine.fold(name)
        except LedgerSinkMismatch as error:
            self.progress.note(f"Not published, for what was served before is damaged: {error.what}")

    def _mend(
        self,
        definition: Definition,
        generation: Generation,
        at: int,
        force: bool,
        context: Mapping[str, str] | None,
    ) -> Repaired:
        before = self._reconciled(definition.name, at, context)
        if before.comparison_is_equal:
            if generation.definition_hash == definition.hash:
                self._publish(definition.name)
            return Repaired(before)
        if not force:
            _refuse_to_hide(before)
        batch = newest_batch(self.engine.ledger, self.engine.settings.home, definition, generation, at)
        if batch is None or batch.frontier != at:
            raise Refused(
                f"There is no sound batch result as of txid {at} to repair from.",
                next_step=f"Run `twinstream recompute {definition.name} --frontier {at}`.",
            )
        self.progress.note(f"adding the batch result as of txid {at} as the newest base")
        base = self._mender(definition, generation).repair(batch)
        self.engine.fold(definition.name)
        after = self._reconciled(definition.name, at, context)
        if after.verdict is Verdict.DIFFERENT:
            raise RepairFailed(
                f"After the repair {definition.name} still differs as of txid {at} (reconciliation {after.id}).",
                untouched=f"What was served before can be brought back: `twinstream repair {definition.name} --undo`.",
                next_step=f"See `twinstream report {definition.name}`; the operator or the sink has a defect.",
            )
        return Repaired(before, base.number, after)

    def _reconciled(self, name: str, at: int, context: Mapping[str, str] | None) -> Reconciliation:
        return Reconciler(self.engine, self.progress).reconcile(name, at, context=context)

    def _mender(self, definition: Definition, generation: Generation) -> Mender:
        spark = self.engine.spark()
        store = self.engine.store(definition, generation)
        return Mender(spark, definition, definition.columns(spark), store, self.engine.settings.home)


def _refuse_to_hide(found: Reconciliation) -> None:
    for kind, why in _HIDDEN.items():
        count = found.comparison.counts.get(kind, 0)
        if count:
            raise Refused(
                f"{count} rows differ for a reason that a repair must not hide ({kind.value}): {why}.",
                untouched="Nothing was changed.",
                next_step="Mend the cause first, or repair all the same with --force.",
            )
