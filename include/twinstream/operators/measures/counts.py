"""count() and count("column")."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from twinstream.operators.measures.base import ColumnMeasure, Measure

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType


class _Count(Measure):
    """A number of rows; the state is the number so far."""

    function: ClassVar[str] = "count"

    @abstractmethod
    def counted(self, schema: StructType) -> Column:
        """What is counted where it is not null."""

    def result_type(self, columns: Mapping[str, str]) -> str:
        return "bigint"

    def state_type(self, columns: Mapping[str, str]) -> str:
        return "bigint"

    def full(self, schema: StructType) -> Column:
        from pyspark.sql import functions as F

        return F.count(self.counted(schema))

    def partial(self, schema: StructType) -> Column:
        return self.full(schema)

    def merge(self, state: Column, type_: DataType) -> Column:
        from pyspark.sql import functions as F

        return F.sum(state)

    def present(self, state: Column, type_: DataType) -> Column:
        return state


@dataclass(frozen=True)
class CountRows(_Count):
    """All rows."""

    def canonical(self) -> dict[str, object]:
        return {"measure": "count", "column": None}

    def check(self, name: str, columns: Mapping[str, str | None]) -> None:
        """Rows can always be counted."""

    def counted(self, schema: StructType) -> Column:
        from pyspark.sql import functions as F

        return F.lit(1)


@dataclass(frozen=True)
class CountValues(_Count, ColumnMeasure):
    """The rows where a column is not null."""

    def check_type(self, type_: str) -> None:
        """Values of every type can be counted."""

    def counted(self, schema: StructType) -> Column:
        return self.value(schema)[0]
