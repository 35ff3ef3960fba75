"""Comparing two generations of a pipeline: what a change of the definition has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinstream.batch.table import is_table, read_table
from twinstream.engine import Engine
from twinstream.errors import Refused
from twinstream.ledger import Generation
from twinstream.reconcile.compare import compare
from twinstream.reconcile.key import result_key
from twinstream.reconcile.options import Options
from twinstream.reconcile.result import Comparison
from twinstream.runtime.publish import FINAL
from twinstream.runtime.read import read_result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def compare_generations(engine: Engine, name: str, new: Generation, old: Generation) -> Comparison:
    """The result of one generation against that of another; refused where the columns are other ones."""
    definition = engine.definition(name)
    columns = definition.columns(engine.spark())
    checks = definition.pipeline.checks
    options = Options(mask=tuple(checks.mask), names=(f"generation {new.number}", f"generation {old.number}"))
    return compare(rows_of(engine, name, new), rows_of(engine, name, old), result_key(definition, columns), options)


def rows_of(engine: Engine, name: str, generation: Generation) -> DataFrame:
    """The result of a generation.

    One that was made by another definition can only be had as the plain table that its last fold has published.
    """
    definition = engine.definition(name)
    spark = engine.spark()
    columns = definition.columns(spark)
    if generation.definition_hash == definition.hash:
        store = engine.store(definition, generation)
        return read_result(spark, definition, columns, store)
    published = engine.published(definition)
    if generation.state == "current" and is_table(published):
        rows = read_table(spark, published)
        return rows if FINAL in definition.pipeline.operator.result_columns(columns) else rows.drop(FINAL)
    raise Refused(
        f"Generation {generation.number} of {name} was made by another definition, and its result is not published.",
        next_step="Compare it before another generation is promoted.",
    )
