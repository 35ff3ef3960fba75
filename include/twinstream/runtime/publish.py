"""The published table: one stable path with a plain Delta table of the folded result, for every other engine."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinstream.failpoints import durable
from twinstream.pipeline import Definition
from twinstream.runtime.read import state_rows, view_of
from twinstream.runtime.staging import base_files
from twinstream.sinks.delta import DeltaStore
from twinstream.sinks.sync import sync_file, sync_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FINAL = "final"
"""Whether the watermark has passed a row's window: a column of the plain table only."""


def publish(
    spark: SparkSession, definition: Definition, columns: Mapping[str, str], store: DeltaStore, published: Path
) -> bool:
    """Replaces the published rows by those of the newest base, in one commit; False if they are that already."""
    from deltalake import CommitProperties, Transaction
    from deltalake.transaction import AddAction, RemoveAction
    from pyspark.sql import functions as F

    view = view_of(store)
    if view.base is None:
        return False
    view = view_of(store, view.base.frontier)
    assert view.base is not None
    operator = definition.pipeline.operator
    wanted = operator.result_columns(columns) | ({FINAL: "boolean"} if operator.window else {})
    table = _open(published, wanted)
    if table.transaction_version(f"{store.generation}:published") == view.base.number:
        return False
    rows = operator.present(state_rows(spark, definition, columns, store, view))
    if operator.window:
        passed = F.timestamp_micros(F.lit(view.watermark).cast("bigint"))
        rows = rows.withColumn(FINAL, F.coalesce(F.col("window_end") <= passed, F.lit(False)))
    folder = f"base-{view.base.number}-{secrets.token_hex(4)}"
    with durable("publish.stage"):
        rows.write.parquet(str(published / folder))
    added = base_files(published, folder, view.frontier)
    for file in added:
        sync_file(published / file.path)
    now = int(time.time() * 1000)
    actions: list[Any] = [
        AddAction(file.path, file.size, {}, now, True, json.dumps({"numRecords": file.rows})) for file in added
    ]
    for path, size in _live(table):
        actions.append(
            RemoveAction(path=path, data_change=True, deletion_timestamp=now, size=size, partition_values={})
        )
    with durable("publish.commit"):
        table.create_write_transaction(
            actions,
            "append",
            table.schema(),
            [],
            commit_properties=CommitProperties(
                max_commit_retries=0,
                app_transactions=[Transaction(f"{store.generation}:published", view.base.number)],
                custom_metadata={"twinstream": definition.name, "frontier": str(view.frontier)},
            ),
        )
        sync_folder(published / "_delta_log")
    return True


def _open(published: Path, columns: Mapping[str, str]) -> Any:
    """The published table; made, or made anew when a new definition gives it other columns."""
    from deltalake import DeltaTable

    from twinstream.sinks.types import delta_schema

    schema = delta_schema(columns)
    if DeltaTable.is_deltatable(str(published)):
        table = DeltaTable(str(published))
        if table.schema() == schema:
            return table
    published.mkdir(parents=True, exist_ok=True)
    with durable("publish.create"):
        return DeltaTable.create(str(published), schema=schema, mode="overwrite")


def _live(table: Any) -> list[tuple[str, int]]:
    import pyarrow as pa

    rows = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return [(row["path"], row["size_bytes"]) for row in rows]
