"""The exact average of a decimal sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column


def exact_average(total: Column, count: Column, scale: int) -> Column:
    """`total / count` with four digits more than `total`'s scale, rounded half up; null when the count is 0.

    Spark's own division of a decimal(38,s) cuts the scale of its result, and rounding again what was rounded before
    can end on the wrong side of a tie. So this is long division on whole numbers: the exponent is moved by way of the
    string form, the one conversion that never touches a digit.
    """
    from pyspark.sql import functions as F

    units = F.concat(total.cast("string"), F.lit(f"E{scale}")).cast("decimal(38,0)")
    divisor = F.when(count > 0, count).cast("decimal(19,0)")
    ten_thousand = F.lit(10_000).cast("decimal(5,0)")

    rest = units % divisor
    whole = ((units - rest) / divisor).cast("decimal(28,0)")
    shifted = rest * ten_thousand
    last_rest = shifted % divisor
    digits = ((shifted - last_rest) / divisor).cast("decimal(5,0)")
    away_from_zero = F.when(units < 0, F.lit(-1)).otherwise(F.lit(1))
    carry = F.when(F.abs(last_rest) >= divisor - F.abs(last_rest), away_from_zero).otherwise(F.lit(0))

    rounded = (whole * ten_thousand + digits + carry.cast("decimal(1,0)")).cast("decimal(38,0)")
    return F.concat(rounded.cast("string"), F.lit(f"E-{scale + 4}")).cast(f"decimal(38,{scale + 4})")
