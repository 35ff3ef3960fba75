"""Validation: the facts, the differences and the users' rows, each through its suite, with Data Docs built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinstream.quality import suites
from twinstream.quality.context import SITE, file_context, folder_of
from twinstream.quality.facts import Facts
from twinstream.quality.outcomes import outcomes
from twinstream.quality.users import check_columns, load_suite
from twinstream.reconcile.result import Comparison, Difference, Expectation, Sample, Verdict
from twinstream.settings import Settings

if TYPE_CHECKING:
    import pandas
    from great_expectations import ExpectationSuite
    from pyspark.sql import DataFrame

USERS = "own"


@dataclass(frozen=True)
class Validation:
    """What every expectation came to, and the page that shows it."""

    expectations: tuple[Expectation, ...]
    page: Path
    """The first page of Data Docs."""


def validate(
    home: Path,
    facts: Facts,
    differences: Sequence[Sample],
    users_rows: DataFrame | None = None,
    folder: Path | None = None,
) -> Validation:
    """Asks Twinstream's suites about what was counted, and the users' suite, if rows are given, about those rows.

    A suite that asks for a column that is not there is an error before anything is stored; one that breaks while it is
    asked leaves the pages of the others behind. `folder` is the expectations folder where it is not the one of the
    settings.
    """
    own: ExpectationSuite | None = None
    if users_rows is not None:
        own = load_suite(folder or Settings.from_env().expectations, facts.pipeline)
        check_columns(own, facts.pipeline, users_rows.columns)
        own.name = suites.stored_name(facts.pipeline, USERS)
    with file_context(home) as context:
        run = _Run(context, facts)
        run.ask("facts", _facts_frame(facts), [suites.RECONCILIATION, suites.EXACTLY_ONCE], _facts_suites(facts))
        run.ask("differences", _differences_frame(differences), [suites.DIFFERENCES], [suites.differences_suite(facts)])
        try:
            if own is not None and users_rows is not None:
                run.ask_once("rows", users_rows, f"{facts.pipeline}.py", own)
        finally:
            run.document()
    return Validation(tuple(run.found), folder_of(home) / "data_docs" / "index.html")


def verdict(comparison: Comparison, expectations: Sequence[Expectation]) -> Verdict:
    """Rows that differ or a critical failure: different. Only warnings: warning. Late rows are no defect."""
    differs = any(count for kind, count in comparison.counts.items() if kind is not Difference.LATE)
    failed = {one.severity for one in expectations if not one.success}
    if differs or "critical" in failed:
        return Verdict.DIFFERENT
    return Verdict.WARNING if "warning" in failed else Verdict.EQUAL


def _facts_suites(facts: Facts) -> list[ExpectationSuite]:
    return [suites.reconciliation_suite(facts), suites.exactly_once_suite(facts)]


def _facts_frame(facts: Facts) -> pandas.DataFrame:
    import pandas

    return pandas.DataFrame([facts.row()])


def _differences_frame(differences: Sequence[Sample]) -> pandas.DataFrame:
    import pandas

    rows = [
        {
            "kind": sample.kind.value,
            "key": ", ".join(f"{name}={'null' if value is None else value}" for name, value in sample.key.items()),
            "columns": ", ".join(cell.column for cell in sample.cells),
            "txids": ", ".join(map(str, sample.txids)) or None,
        }
        for sample in differences
    ]
    return pandas.DataFrame(rows, columns=["kind", "key", "columns", "txids"], dtype="object")


class _Run:
    """One validation: checkpoints on several frames under one run name, then one build of the pages."""

    def __init__(self, context: Any, facts: Facts) -> None:
        from great_expectations.core.run_identifier import RunIdentifier

        self._context = context
        self._pipeline = facts.pipeline
        self._id = RunIdentifier(run_name=f"txid-{facts.frontier}", run_time=datetime.now(UTC))
        self._pages: list[Any] = []
        self.found: list[Expectation] = []

    def ask(self, frame: str, rows: Any, names: Sequence[str], asked: Sequence[ExpectationSuite]) -> None:
        """Runs suites on one frame as a checkpoint."""
        import great_expectations as gx

        batch = self._batch(frame)
        definitions = []
        for suite in asked:
            stored = self._context.suites.add_or_update(suite)
            definition = gx.ValidationDefinition(name=suite.name, data=batch, suite=stored)
            definitions.append(self._context.validation_definitions.add_or_update(definition))
        checkpoint = self._context.checkpoints.add_or_update(
            gx.Checkpoint(name=f"{self._pipeline}.{frame}", validation_definitions=definitions, result_format="SUMMARY")
        )
        results = checkpoint.run(batch_parameters={"dataframe": rows}, run_id=self._id).run_results
        for name, (key, result) in zip(names, results.items(), strict=True):
            self._pages += [key, key.expectation_suite_identifier]
            self.found += outcomes(result, name)

    def ask_once(self, frame: str, rows: DataFrame, name: str, suite: ExpectationSuite) -> None:
        """Runs a suite on rows that Spark computes for it only once, however many questions there are."""
        rows = rows.persist()
        try:
            self.ask(frame, rows, [name], [suite])
        finally:
            rows.unpersist()

    def document(self) -> None:
        """Builds the pages of this run and the list of all runs."""
        self._context.build_data_docs(site_names=[SITE], resource_identifiers=self._pages)

    def _batch(self, frame: str) -> Any:
        """The frame's batch definition, made once: its folder is not written again by every run."""
        sources = self._context.data_sources
        name = f"{self._pipeline}.{frame}"
        if name not in sources.all():
            source = sources.add_spark(name, persist=False) if frame == "rows" else sources.add_pandas(name)
            source.add_dataframe_asset(frame).add_batch_definition_whole_dataframe(frame)
        return sources.get(name).get_asset(frame).get_batch_definition(frame)
