"""A batch table: Parquet files that become a Delta table of their own in one step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from twinstream.failpoints import durable
from twinstream.paths import literal
from twinstream.sinks.sync import sync_tree

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def write_table(rows: DataFrame, folder: Path) -> None:
    """Writes the rows and names them in a Delta log; a half-written folder is written anew."""
    from deltalake import convert_to_deltalake

    with durable("batch.write"):
        rows.write.mode("overwrite").parquet(str(folder))
    with durable("batch.table"):
        convert_to_deltalake(str(folder))
        sync_tree(folder)


def is_table(folder: Path) -> bool:
    """Whether the table is whole."""
    from deltalake import DeltaTable

    return DeltaTable.is_deltatable(str(folder))


def read_any(spark: SparkSession, folder: Path) -> DataFrame:
    """A Delta table's rows, or those of a folder of Parquet files."""
    return read_table(spark, folder) if is_table(folder) else spark.read.parquet(literal(folder))


def read_table(spark: SparkSession, folder: Path) -> DataFrame:
    """The table's rows, from the files that its log names."""
    import pyarrow as pa
    from deltalake import DeltaTable

    named = pa.table(DeltaTable(str(folder)).get_add_actions(flatten=True))["path"].to_pylist()
    return spark.read.parquet(*(literal(folder / name) for name in named))
