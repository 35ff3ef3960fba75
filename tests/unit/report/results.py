"""Results to be shown: equal, different, a warning, empty, and one that is hostile in every text."""

from __future__ import annotations

from twinstream.reconcile.result import (
    Cell,
    Comparison,
    Difference,
    Expectation,
    LateEffect,
    Reconciliation,
    Sample,
    Side,
    TxidDifferences,
    Verdict,
)
from twinstream.transaction import Accounting, Tally

START = 1_789_005_600_000_000
HOUR = 3_600_000_000


def side(name: str, rows: int, digest: str = "9f1c04be77a2d3e18b5560c2aa41f0d7") -> Side:
    return Side(name, rows, digest, 1.3)


def comparison(stream: int, batch: int, **changed: object) -> Comparison:
    found = {
        "counts": {}, "samples": (), "heat": (0,) * 256, "buckets": 4096, "differing_buckets": 0, "seconds": 2.9,
    } | changed  # fmt: skip
    return Comparison(stream=side("stream", stream), batch=side("batch", batch), **found)  # type: ignore[arg-type]


def asked(*failed: tuple[str, str, str]) -> tuple[Expectation, ...]:
    met = (
        Expectation("exactly once", "Keys are unique in the stream", "critical", True, "0", "stream_duplicate_keys"),
        Expectation("exactly once", "The accounting of every txid closes in count, sum and XOR", "critical", True, "0"),
        Expectation("page_views.py", "Every row has at least one view", "critical", True, "0 of 1204311 rows", "views"),
    )
    return met + tuple(Expectation("reconciliation", says, level, False, seen) for says, level, seen in failed)


def result(verdict: Verdict, compared: Comparison, **changed: object) -> Reconciliation:
    found = {
        "id": "20260910T020000-7c1e", "pipeline": "page_views", "generation": "g1-5d0e7a", "kind": "stream and batch",
        "frontier": 49, "definition_hash": "3e0b6c7f5a2d4198b7c6d5e4f3a2b1c0", "started_at": START, "seconds": 11.4,
        "verdict": verdict, "comparison": compared, "accounting": ACCOUNTING, "late": LateEffect(8_214, 131),
        "expectations": asked(), "scanned_in_full_at": START, "scanned_in_full_to": 49,
        "versions": {"Twinstream": "0.1.0", "Spark": "4.2.0"},
    } | changed  # fmt: skip
    return Reconciliation(**found)  # type: ignore[arg-type]


ACCOUNTING = Accounting(
    dead=Tally(1_006, 1, 2), duplicate=Tally(0), filtered=Tally(97_310, 3, 4), late=Tally(8_214, 5, 6),
    discarded=Tally(0), emitted=Tally(893_470, 7, 8), rows_out=1_204_311,
)  # fmt: skip

KEY = {"page": "/checkout", "window_start": "2026-09-10 01:12:00"}
SAMPLES = (
    Sample(Difference.MISSING, KEY, (Cell("views", None, "12"), Cell("spend", None, "48.90")), 0, 1, (17,)),
    Sample(Difference.PHANTOM, {**KEY, "page": "/ghost"}, (Cell("views", "3", None), Cell("spend", None, None)), 1, 0),
    Sample(Difference.DUPLICATED, {**KEY, "page": "/cart"}, (), 3, 1, (18, 19)),
    Sample(
        Difference.MISMATCHED,
        {**KEY, "page": None},
        (Cell("views", "41", "40", "+1"), Cell("spend", "100.00", None)),
        txids=(18,),
    ),
)


def heat() -> tuple[int, ...]:
    cells = [0] * 256
    cells[9], cells[77], cells[78], cells[200] = 1, 40, 1, 3
    return tuple(cells)


def equal() -> Reconciliation:
    return result(Verdict.EQUAL, comparison(1_204_311, 1_204_311), late=LateEffect())


def different() -> Reconciliation:
    counts = {
        Difference.MISSING: 1, Difference.PHANTOM: 1, Difference.DUPLICATED: 2, Difference.MISMATCHED: 41,
        Difference.LATE: 131,
    }  # fmt: skip
    txids = tuple(
        TxidDifferences(txid, START - (60 - txid) * HOUR, {Difference.MISMATCHED: 1 + txid % 5, Difference.LATE: 4})
        for txid in range(3, 17)
    )
    worst = TxidDifferences(
        18, START - 42 * HOUR, {Difference.MISSING: 1, Difference.DUPLICATED: 2, Difference.PHANTOM: 1}
    )
    return result(
        Verdict.DIFFERENT,
        comparison(1_204_313, 1_204_312, counts=counts, samples=SAMPLES, heat=heat(), differing_buckets=4),
        txids=(*txids, worst),
        expectations=asked(
            ("No row of the batch is missing from the stream", "critical", "1"),
            ("No key is null in the stream", "warning", "1"),
            ("Stream and batch have the same number of rows", "info", "1"),
        ),
        scanned_in_full_at=START - 20 * HOUR,
        scanned_in_full_to=40,
        causes=("The file `part-0017.json` of txid 17 was changed after it was read.",),
        next_steps=(
            "`twinstream repair page_views --dry-run` shows what a repair would change.",
            "Bring `part-0017.json` back as it was: a repair never hides a cause.",
        ),
    )


def warning() -> Reconciliation:
    return result(
        Verdict.WARNING,
        comparison(512, 512),
        expectations=asked(("Nobody spends less than nothing", "warning", "2 of 512 rows, such as -4.50")),
        next_steps=("Look at the warning.",),
    )


def empty() -> Reconciliation:
    return result(
        Verdict.EQUAL, comparison(0, 0, heat=(), buckets=0), frontier=0, accounting=Accounting(), late=LateEffect(),
        expectations=(), scanned_in_full_at=None, scanned_in_full_to=0, versions={},
    )  # fmt: skip


HOSTILE = "<script>alert(1)</script>\"'`&{{ 7*7 }}"


def hostile() -> Reconciliation:
    """Every text that can come from data, definitions or the outside is hostile."""
    bad = HOSTILE
    sample = Sample(Difference.MISMATCHED, {bad: bad}, (Cell(bad, bad, bad, bad),), txids=(1,))
    compared = Comparison(
        Side(bad, 1, bad, 0.1), Side(bad, 2, bad, 0.1), {Difference.MISMATCHED: 1}, (sample,), (1,), 1, 1, 0.1
    )
    return Reconciliation(
        bad, bad, bad, bad, 1, bad, START, 0.1, Verdict.DIFFERENT, compared,
        txids=(TxidDifferences(1, START, {Difference.MISMATCHED: 1}),), accounting=ACCOUNTING,
        expectations=(Expectation(bad, bad, bad, False, bad, bad),), causes=(bad, f"`{bad}`"),
        next_steps=(bad, f"run `{bad}`"), versions={bad: bad},
    )  # fmt: skip


ALL = {"equal": equal, "different": different, "warning": warning, "empty": empty, "hostile": hostile}
