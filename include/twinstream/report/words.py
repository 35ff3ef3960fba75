"""What every form of the report says in the same words: the verdict's sentence, numbers, moments, tiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinstream.reconcile.result import Comparison, Difference, Expectation, Reconciliation, Verdict
from twinstream.runtime.status import moment
from twinstream.transaction import Accounting

ALWAYS = (Difference.MISSING, Difference.PHANTOM, Difference.DUPLICATED, Difference.MISMATCHED)
CLASSES = {
    "emitted": "emitted",
    "filtered": "filtered",
    "late": "late",
    "duplicate": "duplicate",
    "dead": "dead-lettered",
    "discarded": "discarded",
}
"""The classes of the accounting and how people call them."""
SEVERITIES = ("critical", "warning", "info")


@dataclass(frozen=True)
class Tile:
    """One number that is seen at a glance."""

    label: str
    value: int
    note: str = ""
    tone: str = ""
    """`bad` for what should be zero and is not, `soft` for what is told but is no defect."""


def number(value: int) -> str:
    """Digits in groups of three, which do not break apart at the end of a line."""
    return f"{value:,}".replace(",", "\u202f")


def rate(value: float) -> str:
    """So many a second: slow is not nothing."""
    if value >= 10 or value <= 0:
        return number(round(value))
    return f"{value:.1f}" if value >= 0.1 else "< 0.1"


def count(value: int, one: str, many: str = "") -> str:
    """A number with its noun, kept together."""
    return f"{number(value)}\u00a0{one if value == 1 else many or one + 's'}"


def when(micros: int | None) -> str:
    """A moment in UTC, to the second."""
    found = moment(micros)
    return f"{found[:19].replace('T', ' ')} UTC" if found else "never"


def differing(compared: Comparison) -> int:
    """Rows that differ and should not; late rows are no defect."""
    return sum(many for kind, many in compared.counts.items() if kind is not Difference.LATE)


def kinds(counts: Mapping[Difference, int]) -> str:
    """The kinds that there are, with their numbers."""
    return ", ".join(f"{number(counts[kind])}\u00a0{kind.value}" for kind in Difference if counts.get(kind))


def failed(result: Reconciliation, severity: str) -> int:
    """How many expectations of a severity were not met."""
    return sum(1 for one in result.expectations if not one.success and one.severity == severity)


def sentence(result: Reconciliation) -> str:
    """The verdict in one sentence."""
    compared = result.comparison
    upto = "" if result.kind == "tables" else f" up to txid {number(result.frontier)}"
    rows = differing(compared)
    if rows:
        named = kinds({kind: many for kind, many in compared.counts.items() if kind is not Difference.LATE})
        return f"{count(rows, 'row')} {'differs' if rows == 1 else 'differ'}{upto}: {named}."
    if compared.stream.rows or compared.batch.rows:
        equal = f"All {count(compared.stream.rows, 'row')} are equal{upto}"
        equal = equal if compared.stream.rows != 1 else f"The only row is equal{upto}"
    else:
        equal = f"Both sides are empty{upto}"
    if result.verdict is Verdict.DIFFERENT:
        broken = failed(result, "critical")
        return f"{equal}, but {count(broken, 'critical expectation')} {'is' if broken == 1 else 'are'} not met."
    if result.verdict is Verdict.WARNING:
        doubts = failed(result, "warning")
        return f"{equal}, with {count(doubts, 'warning')}."
    return f"{equal}."


def tiles(result: Reconciliation) -> list[Tile]:
    """The numbers to see first; the rare kinds of difference only where there are some."""
    compared = result.comparison
    same = compared.stream.rows == compared.batch.rows
    rows = Tile(
        "rows compared",
        compared.stream.rows,
        "on both sides" if same else f"{number(compared.batch.rows)} in the {compared.batch.name}",
    )
    found = [
        Tile(kind.value, many, tone="bad" if many else "")
        for kind in Difference
        if kind is not Difference.LATE
        for many in [compared.counts.get(kind, 0)]
        if many or kind in ALWAYS
    ]
    changed = max(result.late.rows_changed, compared.counts.get(Difference.LATE, 0))
    note = f"{count(changed, 'row')} would change" if changed else "no row would change"
    return [rows, *found, Tile("late", result.late.records, note if result.late.records or changed else "", "soft")]


def books(accounting: Accounting) -> list[tuple[str, str, int]]:
    """Where the records went: class, the word for it, how many."""
    return [(name, word, getattr(accounting, name).count) for name, word in CLASSES.items()]


def scanned(result: Reconciliation) -> str:
    """When every stored row was last read; what was not read again cannot have been checked."""
    if result.scanned_in_full_at is None:
        return "The stored rows were never scanned in full: damage to rows that were not read now would not be seen."
    text = f"Every stored row was last read at {when(result.scanned_in_full_at)}"
    if result.kind == "tables":
        return f"{text}."
    text += f", up to txid {number(result.scanned_in_full_to)}."
    if result.scanned_in_full_at < result.started_at:
        text += " Rows that did not change since then were not read again."
    return text


def by_weight(expectations: tuple[Expectation, ...]) -> list[Expectation]:
    """What failed first, the gravest of it on top; within that the order of the suites."""
    ranks = {severity: rank for rank, severity in enumerate(SEVERITIES)}
    return sorted(
        expectations, key=lambda one: (one.success, 0 if one.success else ranks.get(one.severity, len(ranks)))
    )
