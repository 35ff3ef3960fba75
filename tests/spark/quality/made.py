"""Facts and suites to validate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from twinstream.quality.facts import Facts, SideFacts
from twinstream.reconcile.result import Cell, Comparison, Difference, Sample, Side
from twinstream.transaction import Accounting, Tally

GOOD = Facts(
    pipeline="page_views",
    frontier=4,
    stream=SideFacts(90, 0, 0, {"views": 0}),
    batch=SideFacts(90, 0, 0, {"views": 0}),
    accounting=Accounting(emitted=Tally(95), filtered=Tally(3), late=Tally(2)),
    records_in_source=100,
    txids_committed=4,
)
SAMPLE = Sample(Difference.MISSING, {"page": "/a"}, (Cell("views", None, "1"),), 0, 1, (3,))
SUITE = """
import great_expectations as gx
import great_expectations.expectations as gxe

def suite():
    return gx.ExpectationSuite(name="mine", expectations=[{expectations}])
"""


def facts(**changed: object) -> Facts:
    return replace(GOOD, **changed)  # type: ignore[arg-type]


def compared(counts: dict[Difference, int] | None = None) -> Comparison:
    side = Side("stream", 90, "00", 0.1)
    return Comparison(side, side, counts or {}, (), (), 1, 0, 0.1)


def write_suite(folder: Path, *expectations: str, name: str = "page_views") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(SUITE.format(expectations=", ".join(expectations)))
    return folder
