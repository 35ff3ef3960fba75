"""avg("column")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from twinstream.operators.measures.base import ColumnMeasure
from twinstream.operators.measures.sums import check_summable, fast_sum
from twinstream.operators.ratio import exact_average
from twinstream.operators.sqltypes import avg_type, sum_type, summand_type, summed_scale

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType


@dataclass(frozen=True)
class Avg(ColumnMeasure):
    """The exact average, rounded half up once, at the end; the state is the exact sum and the count."""

    function: ClassVar[str] = "avg"

    def check_type(self, type_: str) -> None:
        check_summable(self, type_)

    def result_type(self, columns: Mapping[str, str]) -> str:
        return avg_type(columns[self.column])

    def state_type(self, columns: Mapping[str, str]) -> str:
        return _state_type(sum_type(columns[self.column]))

    def full(self, schema: StructType) -> Column:
        """Spark's own average of a wide decimal: exact, whereas it averages narrow ones through double."""
        from pyspark.sql import functions as F

        value, type_ = self.value(schema)
        return F.avg(value.cast(summand_type(type_.simpleString()))).cast(avg_type(type_.simpleString()))

    def partial(self, schema: StructType) -> Column:
        from pyspark.sql import functions as F

        value, type_ = self.value(schema)
        return _state(fast_sum(value, type_), F.count(value), sum_type(type_.simpleString()))

    def merge(self, state: Column, type_: DataType) -> Column:
        from pyspark.sql import functions as F

        return _state(F.sum(state.getField("sum")), F.sum(state.getField("count")), _type_of_sum(type_))

    def present(self, state: Column, type_: DataType) -> Column:
        return exact_average(state.getField("sum"), state.getField("count"), summed_scale(_type_of_sum(type_)))


def _state(total: Column, count: Column, type_of_sum: str) -> Column:
    """The state as a struct of one type: the cast also lets both fields be null, wherever the state came from."""
    from pyspark.sql import functions as F

    return F.struct(total.alias("sum"), count.alias("count")).cast(_state_type(type_of_sum))


def _state_type(type_of_sum: str) -> str:
    return f"struct<sum:{type_of_sum},count:bigint>"


def _type_of_sum(type_: DataType) -> str:
    from pyspark.sql.types import StructType

    assert isinstance(type_, StructType)
    return type_["sum"].dataType.simpleString()
