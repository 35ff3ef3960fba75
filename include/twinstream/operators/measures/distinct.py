"""approx_distinct("column")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from twinstream.errors import DefinitionError
from twinstream.operators.checks import comparable
from twinstream.operators.measures.base import ColumnMeasure
from twinstream.operators.sqltypes import nested
from twinstream.operators.values import value_hash

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType


@dataclass(frozen=True)
class ApproxDistinct(ColumnMeasure):
    """About how many different values there are; the state is a theta sketch.

    A theta sketch keeps the smallest hashes of the whole set, whatever the split, so every road ends at the same
    number (an HLL sketch here did not). It is fed 64-bit hashes: the sketch itself takes few types, skips empty
    strings, and would hash to 64 bits anyway.
    """

    function: ClassVar[str] = "approx_distinct"

    def check_type(self, type_: str) -> None:
        comparable(self.column, type_, str(self))
        if nested(type_):
            raise DefinitionError(
                f'{self} needs a plain value, but "{self.column}" is {type_}.',
                next_step=f"Select the field you mean, or to_json({self.column}), as a column of its own in prepare.",
            )

    def result_type(self, columns: Mapping[str, str]) -> str:
        return "bigint"

    def state_type(self, columns: Mapping[str, str]) -> str:
        return "binary"

    def full(self, schema: StructType) -> Column:
        from pyspark.sql import functions as F

        return F.theta_sketch_estimate(F.theta_sketch_agg(value_hash(*self.value(schema))))

    def partial(self, schema: StructType) -> Column:
        from pyspark.sql import functions as F

        return F.theta_sketch_agg(value_hash(*self.value(schema)))

    def merge(self, state: Column, type_: DataType) -> Column:
        from pyspark.sql import functions as F

        return F.theta_union_agg(state)

    def present(self, state: Column, type_: DataType) -> Column:
        from pyspark.sql import functions as F

        return F.theta_sketch_estimate(state)
