"""min_("column") and max_("column")."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from twinstream.operators.checks import comparable
from twinstream.operators.measures.base import ColumnMeasure
from twinstream.operators.values import canonical

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType


@dataclass(frozen=True)
class _Extreme(ColumnMeasure):
    """The extreme value that is not null; the state is that value.

    Values that compare as equal are made one after the aggregation, where it costs least: whichever of -0.0 and 0.0
    was met first, 0.0 comes out.
    """

    @abstractmethod
    def extreme(self, value: Column) -> Column:
        """Spark's own aggregate."""

    def check_type(self, type_: str) -> None:
        comparable(self.column, type_, str(self))

    def result_type(self, columns: Mapping[str, str]) -> str:
        return columns[self.column]

    def state_type(self, columns: Mapping[str, str]) -> str:
        return columns[self.column]

    def full(self, schema: StructType) -> Column:
        value, type_ = self.value(schema)
        return canonical(self.extreme(value), type_)

    def partial(self, schema: StructType) -> Column:
        return self.full(schema)

    def merge(self, state: Column, type_: DataType) -> Column:
        return self.extreme(state)

    def present(self, state: Column, type_: DataType) -> Column:
        return state


@dataclass(frozen=True)
class Min(_Extreme):
    """The smallest value."""

    function: ClassVar[str] = "min_"

    def extreme(self, value: Column) -> Column:
        from pyspark.sql import functions as F

        return F.min(value)


@dataclass(frozen=True)
class Max(_Extreme):
    """The largest value; NaN is larger than every number, as everywhere in Spark."""

    function: ClassVar[str] = "max_"

    def extreme(self, value: Column) -> Column:
        from pyspark.sql import functions as F

        return F.max(value)
