"""Reconciling: is what was streamed what should have been? One answer per frontier, kept in the ledger."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from twinstream.batch.layer import BatchLayer
from twinstream.batch.recompute import KIND as RECOMPUTE
from twinstream.batch.recompute import RUN_SECONDS, check_frontier, remaining, tables_of
from twinstream.batch.scope import EVERYTHING, Scope
from twinstream.batch.table import is_table, read_table
from twinstream.engine import Engine
from twinstream.errors import ReportError, TwinstreamError
from twinstream.ledger import Generation, Run
from twinstream.ledger.runs import Wanted
from twinstream.pipeline import Definition
from twinstream.quality.facts import Facts, SideFacts
from twinstream.quality.users import has_suite
from twinstream.quality.validate import Validation, validate, verdict
from twinstream.reconcile.causes import Explained, explain
from twinstream.reconcile.certificate import certificate, save
from twinstream.reconcile.compare import Found, compare, find
from twinstream.reconcile.counted import Counted
from twinstream.reconcile.digests import is_current
from twinstream.reconcile.options import Options
from twinstream.reconcile.quick import CannotGoOn, go_on, since
from twinstream.reconcile.result import Comparison, Difference, LateEffect, Reconciliation, Verdict
from twinstream.reconcile.sides import Sides
from twinstream.reconcile.unmerged import equal_without_merging
from twinstream.report.as_json import to_dict, to_json
from twinstream.report.html import to_html
from twinstream.report.paths import report_path
from twinstream.runtime.heartbeat import run_heartbeat
from twinstream.runtime.holder import is_dead, new_holder
from twinstream.runtime.progress import Progress
from twinstream.transaction import Accounting, Batch

KIND = "reconcile"


@dataclass(frozen=True)
class Looked:
    """What was found by reading both sides, or only what is new."""

    explained: Explained
    stream: SideFacts
    batch: SideFacts
    scanned_at: int | None
    """When every row of the stream was last read, if not now."""
    scanned_to: int


@dataclass(frozen=True)
class Reconciler:
    """Compares what an engine streamed with what its source says."""

    engine: Engine
    progress: Progress

    @property
    def batch(self) -> BatchLayer:
        return BatchLayer(self.engine)

    def reconcile(
        self,
        name: str,
        frontier: int | None = None,
        scope: Scope = EVERYTHING,
        *,
        fresh: bool = False,
        quick: bool = False,
        generation: Generation | None = None,
        context: Mapping[str, str] | None = None,
    ) -> Reconciliation:
        """The answer at a frontier; with `fresh` the batch is recomputed even if there is a result for it.

        With `quick` only what was committed since the last reconciliation is read of the stream's side, where that is
        possible and enough. It is about the current generation unless another one is given.
        """
        definition = self.engine.definition(name)
        generation = generation or self.engine.any_generation(definition)
        at = check_frontier(generation, frontier)
        fitted = scope.fitted(definition, self.engine.columns(definition))
        wanted = Wanted(generation.id, KIND, at, definition.hash, fitted.to_dict())
        ledger = self.engine.ledger
        run = ledger.runs.start(wanted, new_holder(), RUN_SECONDS, is_dead=is_dead, context=context)
        try:
            with run_heartbeat(ledger, run, RUN_SECONDS), ledger.pins.hold(generation.id, at, KIND):
                result = self._work(definition, generation, run, fitted, fresh, quick)
            self._keep(result, generation, fitted)
            ledger.runs.finish(run, to_dict(result))
        except Exception as error:
            what = error.what if isinstance(error, TwinstreamError) else f"{type(error).__name__}: {error}"
            ledger.runs.fail(run, what.splitlines()[0][:500])
            raise
        return result

    def _work(
        self, definition: Definition, generation: Generation, run: Run, scope: Scope, fresh: bool, quick: bool
    ) -> Reconciliation:
        began, started_at = time.monotonic(), int(time.time() * 1_000_000)
        engine = self.engine
        batch_run = self._batch_run(definition, generation, run.frontier, scope, fresh)
        sides = Sides(
            engine.spark(), definition, definition.columns(engine.spark()), engine.store(definition, generation),
            engine.settings.home, batch_run,
        )  # fmt: skip
        batches = engine.ledger.batches.get(generation.id, 1, run.frontier)
        mended = sides.mended
        went_on = self._go_on(definition, generation, sides) if quick and not scope else None
        other = generation.definition_hash != definition.hash
        looked = went_on or self._look_without_merging(sides, other) or self._look(definition, sides, batches, other)
        explained = looked.explained
        late = self._late_effect(definition, batch_run, sides)
        comparison = explained.comparison
        counts = {**comparison.counts, Difference.LATE: late.rows_changed}
        comparison = replace(comparison, counts=counts)
        accounting = reduce(add_accountings, (b.accounting for b in batches if b.accounting), Accounting())
        facts = Facts(
            pipeline=definition.name,
            frontier=run.frontier,
            stream=looked.stream,
            batch=looked.batch,
            differences=counts,
            accounting=accounting,
            records_in_source=sum(_in_source(batch) for batch in batches),
            txids_committed=len(batches),
            txids_open=sum(not is_closed(b) for b in batches),
        )
        self.progress.note("validating with Great Expectations")
        validation = self._validate(definition, facts, comparison, None if went_on else sides)
        found_verdict = verdict(comparison, validation.expectations)
        return Reconciliation(
            id=str(run.id),
            pipeline=definition.name,
            generation=generation.name,
            kind="stream and batch",
            frontier=run.frontier,
            definition_hash=definition.hash,
            started_at=started_at,
            seconds=time.monotonic() - began,
            verdict=found_verdict,
            comparison=comparison,
            txids=explained.txids,
            accounting=accounting,
            late=late,
            expectations=validation.expectations,
            scanned_in_full_at=looked.scanned_at or started_at,
            scanned_in_full_to=looked.scanned_to,
            mended=mended,
            causes=explained.causes,
            next_steps=next_steps(definition.name, found_verdict, explained, run.frontier),
            versions=versions(),
        )

    def _look_without_merging(self, sides: Sides, other: bool) -> Looked | None:
        """Reads both sides whole, and finds them equal without merging what is not folded yet."""
        changed = (sides.run.result or {}).get("changed")
        compared = None if other or changed else equal_without_merging(sides)
        if compared is None:
            return None
        self.progress.note(f"compared the stream with the batch as of txid {sides.frontier} without merging")
        rows = SideFacts(compared.stream.rows, duplicate_keys=0, null_keys=0 if sides.key else None)
        return Looked(Explained(compared), rows, rows, scanned_at=None, scanned_to=sides.frontier)

    def _look(self, definition: Definition, sides: Sides, batches: Sequence[Batch], other: bool) -> Looked:
        """Reads both sides whole, and where they differ, what is behind it."""
        non_negative = definition.pipeline.checks.non_negative
        stream, batch = (Counted(rows, sides.key, non_negative) for rows in (sides.stream(), sides.batch()))
        changed = (sides.run.result or {}).get("changed") or {}
        self.progress.note(f"comparing the stream with the batch as of txid {sides.frontier}")
        with find(stream.rows, batch.rows, sides.key, options_of(definition)) as found:
            self._require_unaltered(definition, sides, found)
            if found.rows is not None:
                self.progress.note("looking for the causes of what differs")
            places = self.engine.places(definition)
            left = remaining(definition, places, batches, changed)
            explained = explain(found, sides, left, places, changed, other)
        compared = explained.comparison
        unique = not definition.pipeline.operator.stateless
        return Looked(
            explained,
            stream.facts(compared.stream.rows, compared.counts.get(Difference.DUPLICATED, 0) if unique else None),
            batch.facts(compared.batch.rows, 0 if unique else None),
            scanned_at=None,
            scanned_to=sides.frontier,
        )

    def _go_on(self, definition: Definition, generation: Generation, sides: Sides) -> Looked | None:
        """Reads only what is new, where an earlier reconciliation allows it and nothing differs."""
        try:
            earlier = since(self.engine.ledger, self.engine.settings.home, definition, generation, sides)
            self.progress.note(
                f"comparing txids {earlier.earlier.frontier + 1} to {sides.frontier}, the rest as it was found before"
            )
            compared = go_on(earlier, sides, sides.run)
        except CannotGoOn as reason:
            self.progress.note(f"comparing everything, for {reason}")
            return None
        rows = SideFacts(compared.stream.rows)
        before = earlier.earlier
        return Looked(Explained(compared), rows, rows, before.scanned_in_full_at, before.scanned_in_full_to)

    def _require_unaltered(self, definition: Definition, sides: Sides, found: Found) -> None:
        """A batch table that is not what was recomputed proves nothing."""
        kept = (sides.run.result or {}).get("digest")
        if (
            kept is None
            or not is_current(kept)
            or definition.pipeline.checks.exclude
            or found.digests[1].hexdigest == kept
        ):
            return
        raise ReportError(
            f"The batch table in {sides.run.folder} is not what was recomputed: something else has changed it.",
            untouched="The stream was left as it is, and no verdict was given.",
            next_step=f"Run `twinstream reconcile {definition.name} --fresh` to recompute and compare again.",
        )

    def _keep(self, result: Reconciliation, generation: Generation, scope: Scope) -> None:
        """Leaves the report behind and, where the whole result was looked at, the certificate."""
        home = self.engine.settings.home
        for suffix, text in (("html", to_html(result)), ("json", to_json(result))):
            path = report_path(home, result.pipeline, result.id, suffix)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        if not scope:
            batches = self.engine.ledger.batches.get(generation.id, 1, result.frontier)
            runs = self.engine.ledger.runs.done(generation.id, RECOMPUTE, result.frontier)
            run = next((one for one in runs if one.frontier == result.frontier and not one.scope), None)
            save(home, certificate(result, batches, run))

    def _batch_run(
        self, definition: Definition, generation: Generation, frontier: int, scope: Scope, fresh: bool
    ) -> Run:
        """The batch result at the frontier: one that is there, or a new one."""
        home = self.engine.settings.home
        for run in [] if fresh else self.engine.ledger.runs.done(generation.id, RECOMPUTE, frontier):
            whole = run.folder is not None and is_table(home / run.folder / "table")
            same = run.scope == scope.to_dict() and run.definition_hash == definition.hash
            if whole and same and run.frontier == frontier and not (run.result or {}).get("changed"):
                return run
        return self.batch.recompute(
            definition.name, frontier, scope, accept_changes=True, progress=self.progress, generation=generation
        )

    def _late_effect(self, definition: Definition, run: Run, sides: Sides) -> LateEffect:
        counted = run.result or {}
        _, with_late = tables_of(self.engine.settings.home, run)
        if with_late is None:
            return LateEffect(int(counted.get("late_records", 0)), 0)
        rows = read_table(self.engine.spark(), with_late)
        rows = rows.drop(*(name for name in rows.columns if name.startswith("_")))
        found = compare(rows, sides.batch(), sides.key, replace(options_of(definition), samples=0))
        return LateEffect(int(counted["late_records"]), sum(found.counts.values()))

    def _validate(
        self, definition: Definition, facts: Facts, comparison: Comparison, sides: Sides | None
    ) -> Validation:
        """The users' own suite is about the stream's rows, so it is asked only where these are read."""
        folder = self.engine.settings.expectations
        own = sides.stream() if sides is not None and has_suite(folder, definition.name) else None
        return validate(self.engine.settings.home, facts, comparison.samples, own, folder)


def options_of(definition: Definition) -> Options:
    """What the definition says about comparing."""
    checks = definition.pipeline.checks
    return Options(tolerance=dict(checks.tolerance), exclude=tuple(checks.exclude), mask=tuple(checks.mask))


def add_accountings(one: Accounting, other: Accounting) -> Accounting:
    """The books of two sets of txids in one."""
    names = list(Accounting.__dataclass_fields__)
    return Accounting(**{name: getattr(one, name) + getattr(other, name) for name in names})


def is_closed(batch: Batch) -> bool:
    """Whether every record that the txid read the first time is in a class, and the source held as many."""
    if batch.accounting is None or batch.input is None:
        return False
    return batch.accounting.read == batch.input


def next_steps(name: str, found: Verdict, explained: Explained, frontier: int) -> tuple[str, ...]:
    """What to do now, in the order in which to do it."""
    if found is Verdict.EQUAL:
        return ()
    counts: Mapping[Any, int] = explained.comparison.counts
    steps: list[str] = []
    if counts.get(Difference.DEFINITION_CHANGED):
        steps.append(f"Build a new generation under the changed definition: `twinstream replay {name}`.")
    if counts.get(Difference.SOURCE_CHANGED):
        steps.append("Bring the changed source files back as they were, then reconcile again.")
    if counts.get(Difference.NON_DETERMINISTIC):
        steps.append("Make prepare a pure function of the record, then replay.")
    mendable = (Difference.MISSING, Difference.PHANTOM, Difference.DUPLICATED, Difference.MISMATCHED)
    if any(counts.get(kind) for kind in mendable) and not steps:
        steps.append(f"See what a repair would change: `twinstream repair {name} --frontier {frontier} --dry-run`.")
        steps.append(f"Then mend it: `twinstream repair {name} --frontier {frontier}`.")
    return tuple(steps) or ("Look at the expectations that failed.",)


def versions() -> dict[str, str]:
    """The versions that a result may depend on."""
    from importlib.metadata import version

    names: Sequence[str] = ("pyspark", "deltalake", "great-expectations")
    from twinstream import __version__

    return {"twinstream": __version__} | {name: version(name) for name in names}


def _in_source(batch: Batch) -> int:
    """How many records the source holds of a txid: what it says itself, or, where it cannot tell, what was logged."""
    if batch.accounting is not None and not batch.accounting.read.count:
        return 0
    return batch.range.records if batch.range.exact or batch.input is None else batch.input.count
