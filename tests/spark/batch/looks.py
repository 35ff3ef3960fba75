"""Looking at a stream and at what reconciliation says of it."""

from __future__ import annotations

from typing import Any

from tests.e2e.home import Home
from tests.spark.batch import damage
from twinstream.reconcile.reconcile import Reconciler
from twinstream.reconcile.result import Difference, Reconciliation
from twinstream.runtime.progress import Progress


def reconcile(home: Home, name: str = "page_views", **options: Any) -> Reconciliation:
    return Reconciler(home.engine(), Progress()).reconcile(name, **options)


def counts(result: Reconciliation) -> dict[Difference, int]:
    """The kinds of difference that there are; late rows are none."""
    return {kind: count for kind, count in result.comparison.counts.items() if count and kind is not Difference.LATE}


def stored(home: Home, where: str = "true") -> list[Any]:
    """The stored partials of page_views."""
    folder = damage.table_of(home, "page_views").folder
    rows = home.spark.read.format("delta").load(str(folder)).where(f"_kind = 'partial' and {where}")
    return list(rows.orderBy("_txid", "page", "window_start").collect())
