"""What every operator offers to the runtime, the batch layer and the checks on load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from twinstream.operators.windows import Fixed

EVENT_TIME = "_event_time"
RECORD_ID = "_record_id"
KEPT = "_kept"
STATE = "_state"


@runtime_checkable
class Operator(Protocol):
    """One computation by two roads that meet: `full` over all rows, or `present(merge(partials))`.

    `full` never goes through `partial` and `merge`: their agreement is the proof that the product rests on.
    Hidden columns start with an underscore, the user's never do.
    """

    @property
    def stateless(self) -> bool:
        """Whether every row stands for itself, so that nothing has to be merged."""
        ...

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that identify a result row, beside the window."""
        ...

    @property
    def window(self) -> Fixed | None:
        """The event-time window of a result row, if there is one."""
        ...

    def check(self, columns: Mapping[str, str | None]) -> None:
        """Raise DefinitionError unless this can run on prepared rows of these types (None = not known yet)."""
        ...

    def canonical(self) -> dict[str, object]:
        """Everything that changes results, as JSON: a part of the definition's hash."""
        ...

    def result_columns(self, columns: Mapping[str, str]) -> dict[str, str]:
        """Name and type of what users see, in order."""
        ...

    def state_columns(self, columns: Mapping[str, str]) -> dict[str, str]:
        """Name and type of a stored partial (or merged) row, in order."""
        ...

    def full(self, rows: DataFrame) -> DataFrame:
        """The plain query over all kept rows; returns the result columns."""
        ...

    def full_with_state(self, rows: DataFrame) -> DataFrame:
        """`full`, and beside every row in `_state` what `merge` could go on from; one pass over the same groups."""
        ...

    def state_of(self, rows: DataFrame) -> DataFrame:
        """The state rows that `full_with_state` carries."""
        ...

    def partial(self, rows: DataFrame, by: Sequence[str], extra: Sequence[Column]) -> DataFrame:
        """State rows per `by`, key and window, in one pass; `extra` are aggregates that ride along.

        Rows whose `_kept` is not true come with null keys and a null window, only to be counted by `extra`: `by` has
        to hold a column that tells them from kept rows, or they would mix with the group of the null key.
        """
        ...

    def merge(self, states: DataFrame) -> DataFrame:
        """One state row per key and window from any mix of partials and earlier merges."""
        ...

    def present(self, states: DataFrame) -> DataFrame:
        """The result columns of merged state rows."""
        ...

    def late(self, threshold: Column) -> Column | None:
        """Whether a stored state row is late for the watermark `threshold`; None where a state row cannot tell."""
        ...


def col(name: str) -> Column:
    """The column of exactly this name, dots and backticks included."""
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")


def user_columns(rows: DataFrame) -> list[str]:
    """The columns of a frame that are not hidden."""
    return [name for name in rows.columns if not name.startswith("_")]
