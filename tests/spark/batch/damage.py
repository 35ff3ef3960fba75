"""Damage to a stored stream table, as another tool would do it: rows changed behind our back, through Delta itself."""

from __future__ import annotations

from typing import Any

from tests.e2e.home import Home
from twinstream.sinks.delta import DeltaStore


def table_of(home: Home, name: str) -> DeltaStore:
    """The table of the current generation."""
    engine = home.engine()
    definition = engine.definition(name)
    return engine.store(definition, engine.any_generation(definition))


def is_row(row: Any) -> str:
    """A condition that only this row of partials meets."""
    page = row["page"].replace("'", "''")
    start = row["window_start"].strftime("%Y-%m-%d %H:%M:%S")
    return f"_kind = 'partial' and _txid = {row['_txid']} and page = '{page}' and window_start = timestamp '{start}'"


def delete(home: Home, name: str, where: str) -> None:
    """Takes rows out."""
    home.spark.sql(f"delete from delta.`{table_of(home, name).folder}` where {where}")


def change(home: Home, name: str, where: str, values: dict[str, str]) -> None:
    """Writes other values into rows."""
    assignments = ", ".join(f"{column} = {value}" for column, value in values.items())
    home.spark.sql(f"update delta.`{table_of(home, name).folder}` set {assignments} where {where}")


def add(home: Home, name: str, row: Any, **values: str) -> None:
    """Adds a copy of a row, with other values where given."""
    from pyspark.sql import functions as F

    folder = str(table_of(home, name).folder)
    rows = home.spark.read.format("delta").load(folder).where(is_row(row)).limit(1)
    for column, value in values.items():
        rows = rows.withColumn(column, F.lit(value).cast(rows.schema[column].dataType))
    rows.write.format("delta").mode("append").save(folder)
