"""first("column") and last("column")."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from twinstream.operators.base import EVENT_TIME, RECORD_ID, col
from twinstream.operators.checks import comparable
from twinstream.operators.measures.base import ColumnMeasure
from twinstream.operators.values import canonical, value_hash

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType


@dataclass(frozen=True)
class _Ordered(ColumnMeasure):
    """A value by its place in time; nulls are skipped.

    The state is the value with its place: event time, record id, the value's hash. The value itself comes last in
    the order, so that even two values of one hash have one answer.
    """

    @abstractmethod
    def chosen(self, place: Column) -> Column:
        """The place that wins."""

    @abstractmethod
    def chosen_by(self, value: Column, place: Column) -> Column:
        """The value whose place wins."""

    def check_type(self, type_: str) -> None:
        comparable(self.column, type_, str(self))

    def result_type(self, columns: Mapping[str, str]) -> str:
        return columns[self.column]

    def state_type(self, columns: Mapping[str, str]) -> str:
        return f"struct<at:timestamp,id:string,hash:bigint,value:{columns[self.column]}>"

    def full(self, schema: StructType) -> Column:
        value, type_ = self.value(schema)
        return self.chosen_by(canonical(value, type_), self._place(value, type_))

    def partial(self, schema: StructType) -> Column:
        return self.chosen(self._place(*self.value(schema)))

    def merge(self, state: Column, type_: DataType) -> Column:
        return self.chosen(state)

    def present(self, state: Column, type_: DataType) -> Column:
        return state.getField("value")

    def _place(self, value: Column, type_: DataType) -> Column:
        from pyspark.sql import functions as F

        place = F.struct(
            col(EVENT_TIME).alias("at"),
            col(RECORD_ID).alias("id"),
            value_hash(value, type_).alias("hash"),
            canonical(value, type_).alias("value"),
        )
        return F.when(value.isNotNull(), place)


@dataclass(frozen=True)
class First(_Ordered):
    """The earliest value."""

    function: ClassVar[str] = "first"

    def chosen(self, place: Column) -> Column:
        from pyspark.sql import functions as F

        return F.min(place)

    def chosen_by(self, value: Column, place: Column) -> Column:
        from pyspark.sql import functions as F

        return F.min_by(value, place)


@dataclass(frozen=True)
class Last(_Ordered):
    """The latest value."""

    function: ClassVar[str] = "last"

    def chosen(self, place: Column) -> Column:
        from pyspark.sql import functions as F

        return F.max(place)

    def chosen_by(self, value: Column, place: Column) -> Column:
        from pyspark.sql import functions as F

        return F.max_by(value, place)
