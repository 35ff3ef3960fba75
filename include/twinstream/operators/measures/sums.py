"""sum_("column"), and the summing that averages share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar

from twinstream.errors import DefinitionError
from twinstream.operators.measures.base import ColumnMeasure
from twinstream.operators.sqltypes import (
    FLOATS,
    INTEGERS,
    MAX_SUMMED_DIGITS,
    decimal_parts,
    sum_type,
    summand_type,
    summed_scale,
)

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

EXACT_DIGITS = 15
"""Decimals of so many digits are told apart by a double."""
MOST_SCALE = 12
"""With more digits after the point Spark would round what is multiplied: 25 + 12 + 1 are 38."""


@dataclass(frozen=True)
class Sum(ColumnMeasure):
    """The exact sum; the state is the sum so far, in the type of the result."""

    function: ClassVar[str] = "sum_"

    def check_type(self, type_: str) -> None:
        check_summable(self, type_)

    def result_type(self, columns: Mapping[str, str]) -> str:
        return sum_type(columns[self.column])

    def state_type(self, columns: Mapping[str, str]) -> str:
        return sum_type(columns[self.column])

    def full(self, schema: StructType) -> Column:
        from pyspark.sql import functions as F

        value, type_ = self.value(schema)
        return F.sum(value.cast(summand_type(type_.simpleString()))).cast(sum_type(type_.simpleString()))

    def partial(self, schema: StructType) -> Column:
        return fast_sum(*self.value(schema))

    def merge(self, state: Column, type_: DataType) -> Column:
        from pyspark.sql import functions as F

        return F.sum(state).cast(type_)

    def present(self, state: Column, type_: DataType) -> Column:
        return state


def fast_sum(value: Column, type_: DataType) -> Column:
    """The sum of some rows as decimal(38,s), adding in machine words where the values fit into one.

    A whole number is summed as two halves of 32 bits, which cannot overflow before 2^31 rows of one group (and would
    raise then, not wrap): five times as fast as adding decimals.
    """
    from pyspark.sql import functions as F

    name = type_.simpleString()
    units = _in_units(value, name)
    if units is None:
        return F.sum(value).cast(sum_type(name))
    high = F.sum(F.shiftright(units, 32)).cast("decimal(20,0)")
    low = F.sum(units.bitwiseAND(F.lit(0xFFFF_FFFF).cast("bigint"))).cast("decimal(20,0)")
    total = high * F.lit(2**32).cast("decimal(10,0)") + low
    if scale := summed_scale(name):
        total = total.cast("decimal(25,0)") * F.lit(Decimal(1).scaleb(-scale)).cast(f"decimal({scale},{scale})")
    return total.cast(sum_type(name))


def _in_units(value: Column, type_: str) -> Column | None:
    """A number as a whole one, in units of its last digit; None where that is not known to be exact.

    A decimal goes through a double. With 15 digits it is off by less than half a unit twice over (2^50 times two
    roundings of 2^-53), so that the nearest whole number is the right one.
    """
    from pyspark.sql import functions as F

    if type_ == "bigint":
        return value
    parts = decimal_parts(type_)
    if parts is None or parts[0] > EXACT_DIGITS or parts[1] > MOST_SCALE:
        return None
    return F.rint(value.cast("double") * F.lit(float(10 ** parts[1]))).cast("bigint")


def check_summable(measure: ColumnMeasure, type_: str) -> None:
    """Refuse types whose sum is not one exact number."""
    column = measure.column
    parts = decimal_parts(type_)
    if type_ in FLOATS:
        raise DefinitionError(
            f'{measure} adds floating-point numbers ("{column}" is {type_}): the result would depend on their order.',
            next_step=f"Use decimal({MAX_SUMMED_DIGITS},6), or the scale your data has: declare the column so, "
            f"or cast({column} as decimal({MAX_SUMMED_DIGITS},6)) as {column} in prepare.",
        )
    if parts and parts[0] > MAX_SUMMED_DIGITS:
        fitting = f"decimal({MAX_SUMMED_DIGITS},{min(parts[1], MAX_SUMMED_DIGITS)})"
        raise DefinitionError(
            f'{measure} could overflow on the way ("{column}" is {type_}, a sum holds 38 digits).',
            next_step=f"Use {fitting} for the column, or cast({column} as {fitting}) as {column} in prepare.",
        )
    if not parts and type_ not in INTEGERS:
        raise DefinitionError(
            f'{measure} needs a number, but "{column}" is {type_}.',
            next_step="Use an integer or decimal column, or count, min_, max_, first or last.",
        )
