"""A scope limits a recomputation to a stretch of event time or to some keys; both sides are limited alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from twinstream.errors import Refused
from twinstream.operators.base import EVENT_TIME, col
from twinstream.pipeline import Definition

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class Scope:
    """Empty means everything. Times are microseconds since 1970, the end not included."""

    start: int | None = None
    end: int | None = None
    keys: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.start is not None or self.end is not None or bool(self.keys)

    def to_dict(self) -> dict[str, Any]:
        found = {"start": self.start, "end": self.end, "keys": dict(self.keys)}
        return {name: value for name, value in found.items() if value}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Scope:
        return cls(**value)

    def fitted(self, definition: Definition, columns: Mapping[str, str]) -> Scope:
        """The scope in whole windows; refuses what cannot be told apart in the result."""
        operator = definition.pipeline.operator
        known = operator.keys if not operator.stateless else tuple(columns)
        for name in self.keys:
            if name not in known:
                raise Refused(
                    f"{name!r} is no key of {definition.name}'s result.",
                    next_step=f"Use one of: {', '.join(known) or '(the result has no keys)'}.",
                )
        if self.start is None and self.end is None:
            return self
        if operator.window is None and not operator.stateless:
            raise Refused(
                f"{definition.name} has no window, so a stretch of event time cannot be told apart in its result.",
                next_step="Recompute all of it, or only some keys.",
            )
        size = operator.window.micros if operator.window else 1
        start = None if self.start is None else self.start - self.start % size
        end = None if self.end is None else self.end + (-self.end) % size
        return Scope(start, end, self.keys)

    def of_records(self, rows: DataFrame) -> DataFrame:
        """Prepared rows in the scope, by their event time and their keys."""
        return self._limited(rows, col(EVENT_TIME))

    def of_states(self, rows: DataFrame) -> DataFrame:
        """Stored rows in the scope, by their window or, where every row stands for itself, their event time."""
        if self.start is None and self.end is None:
            return self._limited(rows, None)
        return self._limited(rows, col("window_start" if "window_start" in rows.columns else EVENT_TIME))

    def _limited(self, rows: DataFrame, moment: Column | None) -> DataFrame:
        from pyspark.sql import functions as F

        if moment is not None and self.start is not None:
            rows = rows.where(F.unix_micros(moment) >= self.start)
        if moment is not None and self.end is not None:
            rows = rows.where(F.unix_micros(moment) < self.end)
        for name, value in self.keys.items():
            rows = rows.where(col(name).cast("string") == F.lit(value))
        return rows


EVERYTHING = Scope()
