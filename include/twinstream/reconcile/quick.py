"""Going on from an earlier reconciliation: of the stream's side only what was committed since then is read.

Rows have digests that add up, counts and sums have linear fingerprints that do. So if stream and batch were equal as of
F0, the stream as of F is the batch's fingerprint as of F0 plus that of the partials in between. Damage to what is not
read cannot be seen: the result says when every stored row was last read.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from twinstream.batch.recompute import KIND as RECOMPUTE
from twinstream.errors import LedgerSinkMismatch, Refused
from twinstream.ledger import Generation, Ledger, Run
from twinstream.pipeline import Definition
from twinstream.reconcile.compare import equal_comparison
from twinstream.reconcile.digests import BucketDigests, digest
from twinstream.reconcile.linear import LinearFingerprint, linear_fingerprint
from twinstream.reconcile.prints import Prints, load_prints
from twinstream.reconcile.result import Comparison, Reconciliation, Side
from twinstream.reconcile.shape import shape_of
from twinstream.reconcile.sides import Sides
from twinstream.report.as_json import from_dict
from twinstream.runtime.read import partial_rows, view_after

RECONCILE = "reconcile"


class CannotGoOn(Exception):
    """Why everything has to be read."""


@dataclass(frozen=True)
class Since:
    """An earlier reconciliation at which both sides were equal, with the batch's fingerprints at its frontier."""

    earlier: Reconciliation
    prints: Prints


def since(ledger: Ledger, home: Path, definition: Definition, generation: Generation, sides: Sides) -> Since:
    """The newest reconciliation to go on from."""
    checks = definition.pipeline.checks
    if checks.tolerance or checks.exclude:
        raise CannotGoOn("a tolerance or excluded columns ask for rows")
    for run in ledger.runs.done(generation.id, RECONCILE, sides.frontier):
        if run.scope or run.definition_hash != definition.hash or run.result is None:
            continue
        earlier = from_dict(run.result)
        if not earlier.comparison_is_equal:
            raise CannotGoOn(f"stream and batch differed as of txid {earlier.frontier}")
        if earlier.mended != sides.mended:
            raise CannotGoOn("the result was repaired since the last reconciliation")
        prints = _prints(ledger, home, generation, earlier)
        if prints is None:
            raise CannotGoOn(f"the batch result as of txid {earlier.frontier} is gone")
        return Since(earlier, prints)
    raise CannotGoOn("there is no earlier reconciliation to go on from")


def go_on(found: Since, sides: Sides, batch: Run) -> Comparison:
    """The comparison at the new frontier; raises CannotGoOn if it is not equal, for then rows must be looked at."""
    started = time.monotonic()
    assert batch.folder is not None
    wanted = load_prints(sides.home / batch.folder)
    if wanted is None:
        raise CannotGoOn("the batch result has no fingerprints")
    expected = _advancing(wanted)
    try:
        streamed = _advancing(found.prints) + _after(found.earlier.frontier, sides)  # type: ignore[operator]
    except (LedgerSinkMismatch, Refused) as error:
        raise CannotGoOn(error.what) from error
    seconds = time.monotonic() - started
    if streamed.hexdigest != expected.hexdigest:
        raise CannotGoOn("what was streamed since then is not what the batch says")
    rows, mark = wanted.digests.rows, wanted.digests.hexdigest
    return equal_comparison(Side("stream", rows, mark, seconds), Side("batch", rows, mark, 0.0), seconds)


def _advancing(prints: Prints) -> BucketDigests | LinearFingerprint:
    """The fingerprint that can be added to: the rows' digests where rows stand for themselves."""
    return prints.digests if prints.linear is None else prints.linear


def _after(frontier: int, sides: Sides) -> BucketDigests | LinearFingerprint:
    """The fingerprint of what was committed after a txid."""
    operator = sides.operator
    view = view_after(sides.store, frontier, sides.frontier)
    rows = partial_rows(sides.spark, sides.definition, sides.columns, sides.store, view)
    states = rows.select(*operator.state_columns(sides.columns))
    if not operator.stateless:
        return linear_fingerprint(states, operator)
    shown = operator.present(states)
    return digest(shown, shape_of(shown.schema, sides.key))


def _prints(ledger: Ledger, home: Path, generation: Generation, earlier: Reconciliation) -> Prints | None:
    """The fingerprints of the batch result that the earlier reconciliation compared with."""
    for run in ledger.runs.done(generation.id, RECOMPUTE, earlier.frontier):
        if run.folder and (run.result or {}).get("digest") == earlier.comparison.batch.digest and not run.scope:
            prints = load_prints(home / run.folder)
            if prints is not None and prints.digests.hexdigest == earlier.comparison.batch.digest:
                return prints
    return None
