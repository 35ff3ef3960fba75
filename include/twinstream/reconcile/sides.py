"""The two sides of a reconciliation at one frontier: what the stream serves, what the batch says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from twinstream.batch.scope import Scope
from twinstream.batch.serve import batch_result
from twinstream.ledger import Run
from twinstream.operators.base import Operator
from twinstream.pipeline import Definition
from twinstream.reconcile.key import result_key
from twinstream.runtime.read import REPAIR, UNDO, View, partial_rows, state_rows, unmerged_states, view_of
from twinstream.sinks.delta import DeltaStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Sides:
    """Both sides as tables of result rows, limited to the same scope."""

    spark: SparkSession
    definition: Definition
    columns: Mapping[str, str]
    store: DeltaStore
    home: Path
    run: Run

    @property
    def frontier(self) -> int:
        return self.run.frontier

    @property
    def scope(self) -> Scope:
        return Scope.from_dict(self.run.scope)

    @property
    def key(self) -> list[str]:
        return result_key(self.definition, self.columns)

    @cached_property
    def view(self) -> View:
        """What is there, whatever the manifests say: reconciliation is to find out what is wrong with it."""
        return view_of(self.store, self.frontier, damaged=True)

    @property
    def mended(self) -> int:
        """The newest base that a repair or its undoing added: from then on the result is another one."""
        return max((base.number for base in self.store.bases() if base.origin in (REPAIR, UNDO)), default=0)

    def stream(self) -> DataFrame:
        """The result as the stream serves it."""
        states = state_rows(self.spark, self.definition, self.columns, self.store, self.view)
        return self.operator.present(self.scope.of_states(states))

    def unmerged(self, base_files: int | None = None) -> list[DataFrame]:
        """The states that the stream's result is made of: the partials, and the base before them, or a part of it."""
        view = replace(self.view, base_files=self.view.base_files[:base_files])
        return unmerged_states(self.spark, self.definition, self.columns, self.store, view)

    def batch(self) -> DataFrame:
        """The result as the batch says it is."""
        return batch_result(self.spark, self.home, self.run)

    def partials(self) -> DataFrame:
        """The stored partials of every txid that are still there, with their `_txid`, late rows left out."""
        whole = view_of(self.store, self.frontier, damaged=True, without_bases=True)
        rows = partial_rows(self.spark, self.definition, self.columns, self.store, whole)
        return self.scope.of_states(rows.select("_txid", *self.operator.state_columns(self.columns)))

    @property
    def operator(self) -> Operator:
        return self.definition.pipeline.operator
