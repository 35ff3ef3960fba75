"""Serving: the newest batch result at F merged with what the stream has committed after F."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from twinstream.batch.recompute import KIND, read_rows, tables_of
from twinstream.batch.table import is_table, read_table
from twinstream.errors import Refused
from twinstream.ledger import Generation, Ledger, Run
from twinstream.pipeline import Definition
from twinstream.runtime.read import partial_rows, view_after
from twinstream.sinks.delta import DeltaStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def newest_batch(
    ledger: Ledger, home: Path, definition: Definition, generation: Generation, at_most: int | None = None
) -> Run | None:
    """The whole, unspoilt batch result with the highest frontier (up to `at_most`)."""
    found = [
        run
        for run in ledger.runs.done(generation.id, KIND, at_most)
        if not run.scope
        and run.definition_hash == definition.hash
        and not (run.result or {}).get("changed")
        and run.folder is not None
        and is_table(home / run.folder / "table")
    ]
    return max(found, key=lambda run: (run.frontier, run.id)) if found else None


def batch_result(spark: SparkSession, home: Path, run: Run) -> DataFrame:
    """A batch table's rows as users see them."""
    return read_rows(spark, tables_of(home, run)[0])


def serving_result(
    spark: SparkSession,
    definition: Definition,
    columns: Mapping[str, str],
    store: DeltaStore,
    home: Path,
    run: Run | None,
    as_of: int | None = None,
) -> DataFrame:
    """Never a hole, never a double count: the batch up to its frontier, the stream's partials after it."""
    if run is None:
        raise Refused(
            f"{definition.name} has no batch result yet.", next_step=f"Run `twinstream recompute {definition.name}`."
        )
    operator = definition.pipeline.operator
    view = view_after(store, run.frontier, as_of)
    batch = operator.state_of(read_table(spark, tables_of(home, run)[0]))
    after = partial_rows(spark, definition, columns, store, view).select(*batch.columns)
    return operator.present(operator.merge(batch.unionByName(after)))
