"""What a prepare function gets: a look-alike of a DataFrame that can only do what is row-wise.

Each record keeps its hidden columns (txid, hash, record id, …) through all of it, and a filter removes nothing: it only
marks rows as not kept. So one pass over the source gives the result and the count of what was filtered. Whatever is
computed is computed for kept rows only, so that a division by zero in a filtered or dead record cannot fail a batch.
(Functions written in Python are the exception: Spark calls them for every row, so they must bear any value.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from twinstream.columns import nearest, parse_type
from twinstream.errors import DefinitionError
from twinstream.prepare.forms import check_column, form, generator_in_function, is_path, own_column, star
from twinstream.prepare.tokens import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    Chosen = tuple[str, Column, bool]

_INSTEAD = {
    "agg": "Aggregating is the operator's work: Aggregate(measures=…).",
    "dropna": "Use where with 'is not null'.",
    "fillna": "Use withColumn and coalesce.",
    "groupBy": "Grouping is the operator's work: Aggregate(by=…).",
    "join": "Only columns of the record itself can be used; Enrich joins a table.",
    "na": "Use withColumn and coalesce, or where.",
    "replace": "Use withColumn and when.",
    "toDF": "Use withColumnsRenamed.",
}


class Rows:
    """The user columns of `df`, with the `hidden` columns carried along out of sight."""

    def __init__(self, df: DataFrame, hidden: tuple[str, ...], names: Sequence[str] | None = None) -> None:
        self._df = df
        self._hidden = hidden
        self._names = names

    @property
    def df(self) -> DataFrame:
        """The underlying frame: hidden columns and user columns, kept and not kept rows."""
        return self._df

    @property
    def columns(self) -> list[str]:
        """The names of the user columns."""
        if self._names is None:
            self._names = [name for name in self._df.columns if name not in self._hidden]
        return list(self._names)

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        """Names and types of the user columns."""
        return [(name, kind) for name, kind in self._df.dtypes if name not in self._hidden]

    @property
    def schema(self) -> StructType:
        """The schema of the user columns."""
        return self._df.select(*_columns(self.columns)).schema

    def __getitem__(self, item: Any) -> Any:
        """A column by name or number, a selection by a list, a filter by a condition; as a DataFrame has it."""
        if isinstance(item, str):
            return _column(self._known(item))
        if isinstance(item, int):
            return _column(self.columns[item])
        if isinstance(item, (list, tuple)):
            return self.select(*item)
        return self.where(item)

    def __getattr__(self, name: str) -> Any:
        """A column by name; every other method of a DataFrame is refused."""
        if name.startswith("_"):
            raise AttributeError(name)
        from pyspark.sql import DataFrame

        if hasattr(DataFrame, name):
            self._refuse(name)
        return _column(self._known(name))

    def __iter__(self) -> NoReturn:
        self._refuse("a loop over the rows")

    def select(self, *cols: Any) -> Rows:
        """Keeps these columns: names, Columns, '*'."""
        from pyspark.sql import functions as F

        given = cols[0] if len(cols) == 1 and isinstance(cols[0], (list, tuple)) else cols
        if not given:
            raise DefinitionError("prepare selects no column.", next_step="Name at least one.")
        wanted: list[Column] = []
        for column in (F.col(item) if isinstance(item, str) else item for item in given):
            path = star(column)
            if path is None:
                check_column(column)
                wanted.append(column)
            elif path:
                fields = self._df.select(column).columns
                wanted += [F.col(f"{path}.{quoted(field)}").alias(field) for field in fields]
            else:
                wanted += _columns(self.columns)
        names = self._df.select(*wanted).columns
        known = self.columns
        return self.project(
            [(name, column, is_path(column, known)) for name, column in zip(names, wanted, strict=True)]
        )

    def selectExpr(self, *expr: Any) -> Rows:
        """Keeps these SQL expressions; what holds for SQL holds for them."""
        from twinstream.prepare.sql import compile_sql

        texts = expr[0] if len(expr) == 1 and isinstance(expr[0], list) else expr
        chosen = compile_sql("select " + "\n, ".join(texts) + "\nfrom events", self._types())
        if chosen.explode:
            raise generator_in_function("explode")
        return chosen(self)

    def where(self, condition: Any) -> Rows:
        """Marks the rows that do not fulfil the condition (a Column or SQL) as not kept."""
        from pyspark.sql import functions as F

        if isinstance(condition, str):
            from twinstream.prepare.expressions import compile_expression

            return self.keep(F.expr(compile_expression(condition, self._types()).sql))
        check_column(condition)
        return self.keep(condition)

    filter = where

    def withColumn(self, colName: str, col: Column) -> Rows:
        """Adds a column, or replaces the one of that name."""
        return self.withColumns({colName: col})

    def withColumns(self, colsMap: Mapping[str, Column]) -> Rows:
        """Adds or replaces several columns at once."""
        columns = self.columns
        _check_names(colsMap)
        for column in colsMap.values():
            check_column(column)
        new = {name.lower(): (name, column, is_path(column, columns)) for name, column in colsMap.items()}
        chosen = [new.pop(name.lower(), (name, _column(name), True)) for name in columns]
        return self.project([*chosen, *new.values()])

    def withColumnRenamed(self, existing: str, new: str) -> Rows:
        """Renames a column; nothing happens when there is none of that name, as in Spark."""
        return self.withColumnsRenamed({existing: new})

    def withColumnsRenamed(self, colsMap: Mapping[str, str]) -> Rows:
        """Renames columns."""
        for name in colsMap:
            self._check_not_own(name)
        new = {old.lower(): name for old, name in colsMap.items()}
        return self.project([(new.get(name.lower(), name), _column(name), True) for name in self.columns])

    def drop(self, *cols: Any) -> Rows:
        """Leaves columns out."""
        gone = [column if isinstance(column, str) else form(column) for column in cols]
        for name in gone:
            self._check_not_own(name)
        lowered = {name.lower() for name in gone}
        return self.project([(name, _column(name), True) for name in self.columns if name.lower() not in lowered])

    def transform(self, func: Callable[..., Rows], *args: Any, **kwargs: Any) -> Rows:
        """Calls `func` on the rows, as a DataFrame does."""
        result: object = func(self, *args, **kwargs)
        if not isinstance(result, Rows):
            raise DefinitionError(f"A function given to transform gave back a {type(result).__name__}, not rows.")
        return result

    def keep(self, condition: Column) -> Rows:
        """`where` without its checks, for conditions that were checked already."""
        from pyspark.sql import functions as F

        kept = F.when(F.col("_kept"), F.when(condition, True).otherwise(False)).otherwise(False)
        return Rows(self._df.withColumn("_kept", kept), self._hidden, self._names)

    def project(self, columns: Sequence[Chosen]) -> Rows:
        """`select` without its checks: name, Column, and whether it is a column as it stands, which cannot fail.

        Everything else is guarded: it is computed for kept rows only.
        """
        from pyspark.sql import functions as F

        names = [name for name, _, _ in columns]
        _check_names(names)
        chosen = [(column if bare else F.when(F.col("_kept"), column)).alias(name) for name, column, bare in columns]
        return Rows(self._df.select(*_columns(self._hidden), *chosen), self._hidden, names)

    def unfold(self, items: Column, *, keep_columns: bool) -> Rows:
        """One row per element of an array, called `_item`; a record without any stays as one row, not kept.

        The result is to be projected at once, which leaves `_item` behind.
        """
        from pyspark.sql import functions as F

        columns = [*self._hidden, *(self.columns if keep_columns else ())]
        array = self._df.select(*_columns(columns), F.when(F.col("_kept"), items).alias("_items"))
        kind = dict(array.dtypes)["_items"]
        if not kind.startswith("array<"):
            raise DefinitionError(
                f"prepare explodes a {kind}, not an array.", next_step="For a map, explode map_entries(…)."
            )
        exploded = array.select(*_columns(columns), F.posexplode_outer("_items").alias("_position", "_item"))
        marked = exploded.withColumns(
            {
                "_kept": F.col("_kept") & F.col("_position").isNotNull(),
                "_first": F.col("_first") & (F.coalesce(F.col("_position"), F.lit(0)) == 0),
            }
        )
        return Rows(marked, self._hidden)

    def _types(self) -> dict[str, str | None]:
        """The user columns with the types that the SQL checks know."""
        types: dict[str, str | None] = {}
        for name, kind in self.dtypes:
            try:
                types[name] = str(parse_type(kind))
            except DefinitionError:
                types[name] = None
        return types

    def _known(self, name: str) -> str:
        self._check_not_own(name)
        for column in self.columns:
            if column.lower() == name.lower():
                return column
        raise DefinitionError(
            f"prepare uses the column {name!r}, which is not there.",
            next_step=nearest(name, self.columns) or f"There are: {', '.join(self.columns)}.",
        )

    def _check_not_own(self, name: str) -> None:
        if name.strip("`").startswith("_"):
            raise own_column(name)

    def _refuse(self, name: str) -> NoReturn:
        hint = f"For the column of that name write rows[{name!r}]." if name in self.columns else _INSTEAD.get(name, "")
        raise DefinitionError(f"prepare is row-wise (filter, map, explode); {name} is not.", next_step=hint)


def _column(name: str) -> Column:
    from pyspark.sql import functions as F

    return F.col(quoted(name))


def _columns(names: Iterable[str]) -> list[Column]:
    return [_column(name) for name in names]


def _check_names(names: Iterable[str]) -> None:
    """Names of columns that prepare gives: not ours, and each only once."""
    seen: set[str] = set()
    for name in names:
        if name.startswith("_"):
            raise DefinitionError(
                f"prepare names a column {name!r}; names that start with an underscore are Twinstream's own.",
                next_step="Give it another name.",
            )
        if name.lower() in seen:
            raise DefinitionError(f"prepare gives two columns the name {name!r}.", next_step="Rename one of them.")
        seen.add(name.lower())
