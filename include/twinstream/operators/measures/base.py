"""What every measure offers to Aggregate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from twinstream.errors import DefinitionError
from twinstream.operators.base import col
from twinstream.operators.checks import known_column

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType


class Measure(ABC):
    """One number or value per group, with a state that merges in any order and any grouping to the same end.

    The state is a single column under the measure's name. `full` and `partial` are aggregates over prepared rows,
    `merge` an aggregate over states, `present` a plain expression on a merged state.
    """

    function: ClassVar[str]

    @abstractmethod
    def canonical(self) -> dict[str, object]:
        """What of the measure changes results."""

    @abstractmethod
    def check(self, name: str, columns: Mapping[str, str | None]) -> None:
        """Refuse an unknown column or a type that this measure has no exact meaning for."""

    @abstractmethod
    def result_type(self, columns: Mapping[str, str]) -> str:
        """Type of what users see."""

    @abstractmethod
    def state_type(self, columns: Mapping[str, str]) -> str:
        """Type of the state column."""

    @abstractmethod
    def full(self, schema: StructType) -> Column:
        """The result as one native aggregate over all rows."""

    @abstractmethod
    def partial(self, schema: StructType) -> Column:
        """The state as an aggregate over some of the rows."""

    @abstractmethod
    def merge(self, state: Column, type_: DataType) -> Column:
        """The state as an aggregate over states; the type stays."""

    @abstractmethod
    def present(self, state: Column, type_: DataType) -> Column:
        """The result of a merged state."""


@dataclass(frozen=True)
class ColumnMeasure(Measure):
    """A measure of one column."""

    column: str

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise DefinitionError(
                f"{self.function}(…) takes the name of a column, not {self.column!r}.",
                next_step=f'Write {self.function}("amount").',
            )

    def __str__(self) -> str:
        return f'{self.function}("{self.column}")'

    def canonical(self) -> dict[str, object]:
        return {"measure": self.function.rstrip("_"), "column": self.column}

    def check(self, name: str, columns: Mapping[str, str | None]) -> None:
        known_column(self.column, columns, f'The measure "{name}", {self},')
        type_ = columns[self.column]
        if type_ is not None:
            self.check_type(type_)

    @abstractmethod
    def check_type(self, type_: str) -> None:
        """Refuse a type that this measure has no exact meaning for."""

    def value(self, schema: StructType) -> tuple[Column, DataType]:
        """The measured column and its type."""
        return col(self.column), schema[self.column].dataType
