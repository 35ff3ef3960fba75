"""What to overlook and what to show when two tables are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from twinstream.errors import BadUsage
from twinstream.reconcile.shape import Shape

Number = int | float | str | Decimal


@dataclass(frozen=True)
class Options:
    """Choices of one comparison."""

    tolerance: Number | Mapping[str, Number] = 0
    """How far numbers may be apart and still count as equal: for all columns outside the key, or by column."""
    exclude: tuple[str, ...] = ()
    """Columns that are not compared."""
    mask: tuple[str, ...] = ()
    """Columns whose values samples do not show."""
    samples: int = 20
    """At most so many sample rows of each kind."""
    names: tuple[str, str] = ("stream", "batch")

    def tolerances(self, shape: Shape) -> dict[str, Decimal]:
        """The tolerance of every numeric column that has one; an error for what makes no sense."""
        if not isinstance(self.tolerance, Mapping):
            limit = _limit(self.tolerance)
            return {name: limit for name in shape.measures if limit and _numeric(shape, name)}
        for name in self.tolerance:
            if name not in shape.measures or not _numeric(shape, name):
                raise BadUsage(
                    f'There can be no tolerance for "{name}".',
                    next_step="Give tolerances for numeric columns outside the key: "
                    f"{', '.join(name for name in shape.measures if _numeric(shape, name)) or 'there is none'}.",
                )
        limits = {name: _limit(value) for name, value in self.tolerance.items()}
        return {name: limit for name, limit in limits.items() if limit}

    def check(self, shape: Shape) -> None:
        """Refuse what makes no sense for this shape."""
        self.tolerances(shape)
        if self.samples < 0:
            raise BadUsage(f"{self.samples} samples cannot be shown.", next_step="Ask for 0 or more.")
        for name in self.mask:
            if name not in shape.columns and name not in self.exclude:
                raise BadUsage(
                    f'The column "{name}", which is to be masked, is in neither table.',
                    next_step=f"The columns are: {', '.join(shape.names)}.",
                )


def _numeric(shape: Shape, name: str) -> bool:
    type_ = shape.columns[name].simpleString()
    return type_ in ("bigint", "double") or type_.startswith("decimal")


def _limit(value: Number) -> Decimal:
    try:
        limit = Decimal(str(value))
    except InvalidOperation:
        limit = Decimal(-1)
    if not limit.is_finite() or limit < 0:
        raise BadUsage(f"{value!r} is not a tolerance.", next_step="Give a number of 0 or more.")
    return limit
