"""prepare: what a pipeline does to each record before its operator, as SQL or as a pure Python function.

It is row-wise (filter, map, explode) and deterministic: the same record gives the same rows whenever, wherever and in
whatever company it is processed. Everything else in the engine leans on that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinstream.errors import DefinitionError
from twinstream.prepare.rows import Rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from twinstream.prepare.expressions import Expression

__all__ = ["Prepared", "Rows", "batch_time", "compile_expression", "compile_prepare"]


def batch_time() -> Column:
    """The time that was logged with the batch: what `current_timestamp` means in prepare."""
    from pyspark.sql import functions as F

    return F.col("_batch_time")


@dataclass(frozen=True)
class Prepared:
    """A checked prepare.

    `output` has the names and types of its columns, a type being None where only Spark can tell, and is None itself for
    functions. `canonical` stands for it in the definition's hash.
    """

    output: dict[str, str | None] | None
    canonical: str
    run: Callable[[Rows], Rows] = field(repr=False, compare=False)
    one_to_one: bool = False
    """Every record stays one row, by the way it is built: SQL that was taken apart here and explodes nothing."""

    def apply(self, df: DataFrame) -> DataFrame:
        """The prepared rows: the hidden columns, then the user's.

        No record is lost on the way: what is filtered or dead comes out with `_kept` false. Hidden columns are all
        those whose names start with an underscore; `_kept` and `_first` are added where they are missing.
        """
        from pyspark.errors import AnalysisException, PySparkTypeError, PySparkValueError

        hidden = tuple(name for name in df.columns if name.startswith("_"))
        marks = _marks(hidden)
        rows = Rows(df.withColumns(marks) if marks else df, (*hidden, *marks))
        try:
            result = self.run(rows)
            if not isinstance(result, Rows):
                raise DefinitionError(
                    f"prepare gave back a {type(result).__name__}, not the rows that it was given.",
                    next_step="Return what select, where, withColumn … give.",
                )
            _check_types(result)
        except (AnalysisException, PySparkTypeError, PySparkValueError) as error:
            reason = str(error).split("\n")[0]
            raise DefinitionError(f"Spark cannot run prepare: {reason}") from error
        return result.df


def compile_prepare(
    prepare: str | Callable[..., Any] | None, columns: Mapping[str, str], root: Path | None = None
) -> Prepared:
    """Checks `prepare` against the source's columns and makes it ready to run; no Spark is needed.

    None keeps the columns as they are. `root` is the pipelines folder, within which a function's helpers and constants
    count as part of it; by default the folder of the function's own file.
    """
    if prepare is None:
        return Prepared(dict(columns), "columns", _keep(tuple(columns)), one_to_one=True)
    if isinstance(prepare, str):
        from twinstream.prepare.canonical import canonical_sql
        from twinstream.prepare.sql import compile_sql

        select = compile_sql(prepare, columns)
        canonical = "sql " + canonical_sql(prepare)
        return Prepared(select.output, canonical, select, one_to_one=select.explode is None)
    from twinstream.prepare.functions import compile_function
    from twinstream.prepare.reach import folder_of
    from twinstream.shipping import carried

    folder = root or folder_of(prepare)
    return Prepared(None, "function " + compile_function(prepare, folder), carried(prepare, folder))


def compile_expression(sql: str, columns: Mapping[str, str | None]) -> Expression:
    """One SQL expression over the source's columns (an event time, say) under the same rules: `.sql` and `.type`."""
    from twinstream.prepare.expressions import compile_expression as compiled

    return compiled(sql, columns)


def _keep(names: tuple[str, ...]) -> Callable[[Rows], Rows]:
    return lambda rows: rows.select(*(rows[name] for name in names))


def _marks(hidden: tuple[str, ...]) -> dict[str, Column]:
    """`_kept` and `_first` for rows that come without; a record with a reason is dead."""
    from pyspark.sql import functions as F

    marks = {}
    if "_kept" not in hidden:
        marks["_kept"] = F.col("_reason").isNull() if "_reason" in hidden else F.lit(True)
    if "_first" not in hidden:
        marks["_first"] = F.lit(True)
    return marks


def _check_types(rows: Rows) -> None:
    for name, kind in rows.dtypes:
        if "void" in kind:
            raise DefinitionError(
                f"The column {name!r} of prepare has no type: it is always null.",
                next_step=f"Give it one: cast(null as string) as {name}.",
            )
