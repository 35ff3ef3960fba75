"""The shape in which two tables are compared: the same columns, each in a type that holds the values of both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinstream.errors import ShapeMismatch
from twinstream.reconcile.types import comparable_type, widest

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


@dataclass(frozen=True)
class Shape:
    """Columns with their types, the key first: digests of one shape can be compared with each other."""

    key: tuple[str, ...]
    columns: Mapping[str, DataType]

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, the key's first, then the others by name: their order in a table means nothing."""
        return (*self.key, *sorted(name for name in self.columns if name not in self.key))

    @property
    def measures(self) -> tuple[str, ...]:
        """The columns that are not in the key, as they stand in the stream's table."""
        return tuple(name for name in self.columns if name not in self.key)

    @property
    def text(self) -> str:
        """One spelling for one shape."""
        columns = ", ".join(f"{name} {self.columns[name].simpleString()}" for name in self.names)
        return f"({', '.join(self.key)}): {columns}"


def shape_of(schema: StructType, key: Sequence[str], exclude: Sequence[str] = ()) -> Shape:
    """The shape of one table by itself."""
    return common_shape(schema, schema, key, exclude)


def common_shape(stream: StructType, batch: StructType, key: Sequence[str], exclude: Sequence[str] = ()) -> Shape:
    """The shape of both tables; an error that names the columns where there is none."""
    left, right = _columns(stream, "stream"), _columns(batch, "batch")
    _known(exclude, left, right)
    for name in exclude:
        if name in key:
            raise ShapeMismatch(
                f'The column "{name}" is in the key, so it cannot be left out.', next_step="Leave out other columns."
            )
    left = {name: type_ for name, type_ in left.items() if name not in exclude}
    right = {name: type_ for name, type_ in right.items() if name not in exclude}
    faults = [f'"{name}" is only on the stream\'s side' for name in left if name not in right]
    faults += [f'"{name}" is only on the batch side' for name in right if name not in left]
    columns: dict[str, DataType] = {}
    for name in left:
        if name not in right:
            continue
        common = widest(left[name], right[name])
        if common is None:
            faults.append(
                f'"{name}" is {left[name].simpleString()} on the stream\'s side and '
                f"{right[name].simpleString()} on the batch side"
            )
        elif not comparable_type(common):
            faults.append(f'"{name}" is {common.simpleString()}, whose values cannot be compared')
        else:
            columns[name] = common
    faults += [f'"{name}" is in the key but in neither table' for name in key if name not in left and name not in right]
    if faults:
        raise ShapeMismatch(
            f"The tables have different shapes: {'; '.join(faults)}.",
            next_step="Compare tables of the same columns and types, or leave columns out.",
        )
    if not columns:
        raise ShapeMismatch("The tables have no column in common.", next_step="Leave fewer columns out.")
    return Shape(tuple(key), columns)


def _columns(schema: StructType, side: str) -> dict[str, DataType]:
    columns = {field.name: field.dataType for field in schema.fields}
    if len(columns) != len(schema.fields):
        twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
        raise ShapeMismatch(
            f"The {side} side has more than one column named {', '.join(twice)}.", next_step="Rename the columns."
        )
    return columns


def _known(exclude: Sequence[str], left: Mapping[str, DataType], right: Mapping[str, DataType]) -> None:
    for name in exclude:
        if name not in left and name not in right:
            raise ShapeMismatch(
                f'The column "{name}", which is to be left out, is in neither table.',
                next_step=f"The columns are: {', '.join(left)}.",
            )
