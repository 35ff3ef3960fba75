"""Twinstream's own suites: is the stream the batch, and was every record counted exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from twinstream.quality.facts import Facts, SideFacts, below_zero_column, difference_column
from twinstream.reconcile.result import Difference

if TYPE_CHECKING:
    from great_expectations import ExpectationSuite

RECONCILIATION = "reconciliation"
DIFFERENCES = "differences"
EXACTLY_ONCE = "exactly once"

_SAYS = {
    Difference.MISSING: "No row of the batch is missing from the stream",
    Difference.PHANTOM: "The stream has no row that the batch does not have",
    Difference.DUPLICATED: "No row is in the stream more often than in the batch",
    Difference.MISMATCHED: "Every row has the same values in the stream and in the batch",
    Difference.SOURCE_CHANGED: "No row differs because the source was changed after it was read",
    Difference.DEFINITION_CHANGED: "No row differs because the definition is another one now",
    Difference.NON_DETERMINISTIC: "Running the batch again gives the same rows again",
}


def reconciliation_suite(facts: Facts) -> ExpectationSuite:
    """The stream is the batch; late rows are told, and are no defect."""
    none = [_none(difference_column(kind), says, "critical") for kind, says in _SAYS.items()]
    late = _told(difference_column(Difference.LATE), "Rows of the result that would change if late records counted")
    apart = _none("rows_apart", "Stream and batch have the same number of rows", "info")
    return _suite(facts, RECONCILIATION, [*none, late, apart])


def differences_suite(facts: Facts) -> ExpectationSuite:
    """The differing rows themselves, as many of them as are kept."""
    from great_expectations.expectations.core.expect_column_values_to_be_in_set import ExpectColumnValuesToBeInSet
    from great_expectations.expectations.core.expect_column_values_to_not_be_null import ExpectColumnValuesToNotBeNull
    from great_expectations.expectations.metadata_types import FailureSeverity

    return _suite(
        facts,
        DIFFERENCES,
        [
            ExpectColumnValuesToBeInSet(
                column="kind",
                value_set=[Difference.LATE.value],
                severity=FailureSeverity.CRITICAL,
                description="No differing row is kept as a sample, but for late ones",
            ),
            ExpectColumnValuesToNotBeNull(
                column="txids",
                severity=FailureSeverity.INFO,
                description="Every differing row is traced to the txids it comes from",
            ),
        ],
    )


def exactly_once_suite(facts: Facts) -> ExpectationSuite:
    """Unique keys, closed books, and nothing that the definition rules out."""
    sides = [*_side("stream", facts.stream), *_side("batch", facts.batch)]
    books = [
        _none(
            "records_unaccounted",
            "Every record of the source is emitted, filtered, late, duplicate, dead-lettered or discarded: "
            "the counts add up",
            "critical",
        ),
        _none("txids_open", "The accounting of every txid closes in count, sum and XOR", "critical"),
        _none("txids_missing", "Every txid up to the frontier is committed", "critical"),
    ]
    return _suite(facts, EXACTLY_ONCE, [*sides, *books])


def _side(name: str, side: SideFacts) -> Iterator[Any]:
    if side.duplicate_keys is not None:
        yield _none(f"{name}_duplicate_keys", f"Keys are unique in the {name}", "critical")
    if side.null_keys is not None:
        yield _none(f"{name}_null_keys", f"No key is null in the {name}", "warning")
    for measure in side.below_zero:
        yield _none(below_zero_column(name, measure), f"{measure} is never below zero in the {name}", "critical")


def _none(column: str, says: str, severity: str) -> Any:
    """The fact in `column` is 0; of all expectations this one shows the number that was found."""
    from great_expectations.expectations.core.expect_column_max_to_be_between import ExpectColumnMaxToBeBetween
    from great_expectations.expectations.metadata_types import FailureSeverity

    return ExpectColumnMaxToBeBetween(
        column=column, min_value=0, max_value=0, severity=FailureSeverity(severity), description=says
    )


def _told(column: str, says: str) -> Any:
    """The fact in `column` is told, whatever it is."""
    from great_expectations.expectations.core.expect_column_max_to_be_between import ExpectColumnMaxToBeBetween
    from great_expectations.expectations.metadata_types import FailureSeverity

    return ExpectColumnMaxToBeBetween(column=column, min_value=0, severity=FailureSeverity("info"), description=says)


def _suite(facts: Facts, name: str, expectations: list[Any]) -> ExpectationSuite:
    import great_expectations as gx

    return gx.ExpectationSuite(name=stored_name(facts.pipeline, name), expectations=expectations)


def stored_name(pipeline: str, suite: str) -> str:
    """The name under which Great Expectations keeps a suite: pipelines do not share any."""
    return f"{pipeline}.{suite.replace(' ', '_')}"
