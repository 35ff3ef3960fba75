"""Aggregate: measures per key and window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinstream.errors import DefinitionError
from twinstream.operators.base import EVENT_TIME, KEPT, STATE, col
from twinstream.operators.checks import comparable, known_column, not_window_names, output_names
from twinstream.operators.measures import Measure
from twinstream.operators.values import canonical
from twinstream.operators.windows import Fixed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ALL = "_all"
_WINDOW = "_window"
_START = "window_start"
_END = "window_end"


@dataclass(frozen=True, init=False)
class Aggregate:
    """Measures by key columns and, if there is one, by event-time window.

    Without keys and window all rows make one group; no rows make none.
    """

    keys: tuple[str, ...]
    window: Fixed | None
    measures: tuple[tuple[str, Measure], ...]

    def __init__(
        self, by: Sequence[str] = (), window: Fixed | None = None, measures: Mapping[str, Measure] | None = None
    ) -> None:
        _well_formed(by, window, measures)
        object.__setattr__(self, "keys", tuple(by))
        object.__setattr__(self, "window", window)
        object.__setattr__(self, "measures", tuple((measures or {}).items()))

    @property
    def stateless(self) -> bool:
        """Never: partials are to be merged."""
        return False

    def check(self, columns: Mapping[str, str | None]) -> None:
        """Refuse what could not run, or could not give one right answer, on prepared rows of these types."""
        if not self.measures:
            raise DefinitionError(
                "Aggregate has no measures.", next_step='Name at least one, such as measures={"rows": count()}.'
            )
        for key in self.keys:
            known_column(key, columns, "Aggregate(by=…)")
        for name, measure in self.measures:
            measure.check(name, columns)
        names = [*self.keys, *(name for name, _ in self.measures)]
        output_names(names, "Aggregate")
        not_window_names(names, "Aggregate")
        for key in self.keys:
            type_ = columns[key]
            if type_ is not None:
                comparable(key, type_, "Aggregate(by=…)")

    def canonical(self) -> dict[str, object]:
        """Everything that changes results; the order of keys and measures is the order of the result's columns."""
        return {
            "operator": "aggregate",
            "by": list(self.keys),
            "window": self.window.canonical() if self.window else None,
            "measures": [{"name": name, **measure.canonical()} for name, measure in self.measures],
        }

    def result_columns(self, columns: Mapping[str, str]) -> dict[str, str]:
        """Keys, window_start and window_end, measures."""
        window = {_START: "timestamp", _END: "timestamp"} if self.window else {}
        measures = {name: measure.result_type(columns) for name, measure in self.measures}
        return {**{key: columns[key] for key in self.keys}, **window, **measures}

    def state_columns(self, columns: Mapping[str, str]) -> dict[str, str]:
        """Keys, window_start, then one state column per measure, under the measure's own name."""
        window = {_START: "timestamp"} if self.window else {}
        measures = {name: measure.state_type(columns) for name, measure in self.measures}
        return {**{key: columns[key] for key in self.keys}, **window, **measures}

    def full(self, rows: DataFrame) -> DataFrame:
        """The query that one would write by hand: Spark's window, Spark's grouping, Spark's functions."""
        return self._full(rows, [])

    def full_with_state(self, rows: DataFrame) -> DataFrame:
        """The same query with every measure's state beside it."""
        from pyspark.sql import functions as F

        states = [measure.partial(rows.schema).alias(name) for name, measure in self.measures]
        return self._full(rows, [F.struct(*states).alias(STATE)])

    def state_of(self, rows: DataFrame) -> DataFrame:
        """Keys and window as they are, measures from the state."""
        states = (col(STATE)[name].alias(name) for name, _ in self.measures)
        return rows.select(*(col(name) for name in self._group_names()), *states)

    def _full(self, rows: DataFrame, extra: Sequence[Column]) -> DataFrame:
        from pyspark.sql import functions as F

        schema = rows.schema
        groups = [col(key) for key in self.keys]
        shown = [col(key) for key in self.keys]
        if self.window:
            groups.append(F.window(col(EVENT_TIME), self.window.duration).alias(_WINDOW))
            shown += [F.col(f"{_WINDOW}.start").alias(_START), F.col(f"{_WINDOW}.end").alias(_END)]
        measured = [measure.full(schema).alias(name) for name, measure in self.measures]
        grouped = rows.groupBy(*(groups or [F.lit(True).alias(_ALL)])).agg(*measured, *extra)
        return grouped.select(*shown, *(col(name) for name, _ in self.measures), *([col(STATE)] if extra else []))

    def partial(self, rows: DataFrame, by: Sequence[str], extra: Sequence[Column]) -> DataFrame:
        """One hash aggregation, windows by integer arithmetic, with `extra` in the same pass."""
        from pyspark.sql import functions as F

        schema = rows.schema
        kept = col(KEPT)
        groups = [col(name) for name in by]
        groups += [F.when(kept, canonical(col(key), schema[key].dataType)).alias(key) for key in self.keys]
        if self.window:
            groups.append(F.when(kept, self.window.start(col(EVENT_TIME))).alias(_START))
        states = [measure.partial(schema).alias(name) for name, measure in self.measures]
        return _group(rows, groups, [*states, *extra])

    def merge(self, states: DataFrame) -> DataFrame:
        """One state row per key and window, of the very types that went in."""
        schema = states.schema
        merged = [measure.merge(col(name), schema[name].dataType).alias(name) for name, measure in self.measures]
        return _group(states, [col(name) for name in self._group_names()], merged)

    def present(self, states: DataFrame) -> DataFrame:
        """Measures as users see them."""
        schema = states.schema
        shown = [col(name) for name in self._group_names()]
        if self.window:
            shown.append(self.window.end(col(_START)).alias(_END))
        measures = [measure.present(col(name), schema[name].dataType).alias(name) for name, measure in self.measures]
        return states.select(*shown, *measures)

    def late(self, threshold: Column) -> Column | None:
        """A state row is late when its window ended at or before the threshold; without a window it cannot tell."""
        from pyspark.sql import functions as F

        if self.window is None:
            return None
        return F.coalesce(self.window.end(col(_START)) <= threshold, F.lit(False))

    def _group_names(self) -> list[str]:
        return [*self.keys, _START] if self.window else [*self.keys]


def _group(rows: DataFrame, groups: list[Column], aggregates: list[Column]) -> DataFrame:
    """Group, also by nothing: then by a constant, for a global aggregation would make a row of no rows."""
    from pyspark.sql import functions as F

    if groups:
        return rows.groupBy(*groups).agg(*aggregates)
    return rows.groupBy(F.lit(True).alias(_ALL)).agg(*aggregates).drop(_ALL)


def _well_formed(by: object, window: object, measures: object) -> None:
    """Refuse arguments of the wrong kind where they are written, not later inside Spark."""
    if isinstance(by, str) or not isinstance(by, Sequence) or not all(isinstance(key, str) for key in by):
        raise DefinitionError(
            f"Aggregate(by=…) takes a list of column names, not {by!r}.", next_step='Write by=["page"].'
        )
    if window is not None and not isinstance(window, Fixed):
        raise DefinitionError(
            f"Aggregate(window=…) takes a window, not {window!r}.", next_step='Write window=fixed("1 minute").'
        )
    if measures is not None and not isinstance(measures, Mapping):
        raise DefinitionError(
            f"Aggregate(measures=…) takes names with their measures, not {measures!r}.",
            next_step='Write measures={"rows": count()}.',
        )
    for name, measure in (measures or {}).items():
        if not isinstance(name, str) or not isinstance(measure, Measure):
            raise DefinitionError(
                f"Aggregate(measures=…) has {name!r}: {measure!r}, which is not a name with a measure.",
                next_step='Write a measure such as count() or sum_("amount").',
            )
