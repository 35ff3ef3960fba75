"""Append: the prepared rows are the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinstream.errors import DefinitionError
from twinstream.operators.base import EVENT_TIME, KEPT, STATE, col, user_columns
from twinstream.operators.checks import output_names

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from twinstream.operators.windows import Fixed


@dataclass(frozen=True)
class Append:
    """Stateless: a kept row is a result row, and merging changes nothing."""

    @property
    def stateless(self) -> bool:
        """Always true."""
        return True

    @property
    def keys(self) -> tuple[str, ...]:
        """None: rows may be equal."""
        return ()

    @property
    def window(self) -> Fixed | None:
        """None."""
        return None

    def check(self, columns: Mapping[str, str | None]) -> None:
        """Refuse rows without columns and names that are reserved or there twice."""
        if not columns:
            raise DefinitionError("Append has no columns to write.", next_step="Select at least one in prepare.")
        output_names(columns, "Append")

    def canonical(self) -> dict[str, object]:
        """Everything that changes results."""
        return {"operator": "append"}

    def result_columns(self, columns: Mapping[str, str]) -> dict[str, str]:
        """The prepared columns."""
        return dict(columns)

    def state_columns(self, columns: Mapping[str, str]) -> dict[str, str]:
        """The prepared columns and the event time that lateness is judged by."""
        return {EVENT_TIME: "timestamp", **columns}

    def full(self, rows: DataFrame) -> DataFrame:
        """All rows without what is hidden."""
        return rows.drop(*(name for name in rows.columns if name.startswith("_")))

    def full_with_state(self, rows: DataFrame) -> DataFrame:
        """All rows with the event time that lateness is judged by."""
        from pyspark.sql import functions as F

        return rows.select(*map(col, user_columns(rows)), F.struct(col(EVENT_TIME)).alias(STATE))

    def state_of(self, rows: DataFrame) -> DataFrame:
        """The same rows with their event time."""
        return rows.select(col(STATE)[EVENT_TIME].alias(EVENT_TIME), *map(col, user_columns(rows)))

    def partial(self, rows: DataFrame, by: Sequence[str], extra: Sequence[Column]) -> DataFrame:
        """Every row for itself, empty where it is not kept; there is no aggregation for `extra` to ride along with."""
        from pyspark.sql import functions as F

        kept = (F.when(col(KEPT), col(name)).alias(name) for name in user_columns(rows))
        return rows.select(*map(col, by), col(EVENT_TIME), *kept)

    def merge(self, states: DataFrame) -> DataFrame:
        """The same rows."""
        return states.select(col(EVENT_TIME), *map(col, user_columns(states)))

    def present(self, states: DataFrame) -> DataFrame:
        """The same rows without what is hidden."""
        return states.select(*map(col, user_columns(states)))

    def late(self, threshold: Column) -> Column | None:
        """A row is late when its event time is below the threshold."""
        from pyspark.sql import functions as F

        return F.coalesce(col(EVENT_TIME) < threshold, F.lit(False))
