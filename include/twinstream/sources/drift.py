"""Schema drift: a file whose columns are not those of the definition is named before anything reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinstream.errors import SchemaDrift, SourceUnreadable
from twinstream.sources.scan import NOT_PLANNED, unreadable

if TYPE_CHECKING:
    import pyarrow as pa

ENOUGH = 5
"""So many records of a sample must agree before a missing or an odd value is called drift and not a bad record."""


def check_json(path: Path, columns: Mapping[str, str], sample: Sequence[Mapping[str, Any]]) -> None:
    """Compares a sample of a JSON file's records with the columns of the definition."""
    known = set(columns)
    for record in sample:
        added = sorted(set(record) - known)
        if added:
            raise _drift(path, f"has the column {added[0]!r}, which the definition does not have")
    for name, kind in columns.items():
        values = [record[name] for record in sample if record.get(name) is not None]
        if len(sample) >= ENOUGH and not any(name in record for record in sample):
            raise _drift(path, f"does not have the column {name!r} ({kind}) any more")
        if len(values) >= ENOUGH and not any(_fits(value, kind) for value in values):
            raise _drift(path, f"has values in the column {name!r} that are not {kind}, for example {values[0]!r:.60}")


def check_parquet(path: Path, columns: Mapping[str, str]) -> int:
    """Compares a Parquet file's footer with the definition; returns how many rows it holds."""
    found, rows = read_footer(path)
    for name, kind in found.items():
        if name not in columns:
            raise _drift(path, f"has the column {name!r}, which the definition does not have")
        if kind != columns[name]:
            raise _drift(path, f"has the column {name!r} as {kind}, where the definition has {columns[name]}")
    for name, kind in columns.items():
        if name not in found:
            raise _drift(path, f"does not have the column {name!r} ({kind}) any more")
    return rows


def read_footer(path: Path) -> tuple[dict[str, str], int]:
    """A Parquet file's columns and its number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            leaves = [file.schema.column(number) for number in range(len(file.schema.names))]
            old = {leaf.path for leaf in leaves if leaf.physical_type == "INT96"}
            found = {
                field.name: "timestamp" if field.name in old else spark_type(field.type) for field in file.schema_arrow
            }
            return found, int(file.metadata.num_rows)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise unreadable(path, error) from error
        raise SourceUnreadable(
            f"The Parquet file {path} is corrupt: {str(error).splitlines()[0]}",
            untouched=NOT_PLANNED,
            next_step="Replace or remove the file, then run the command again.",
        ) from error


def spark_type(kind: pa.DataType) -> str:
    """Spark's simple name for an Arrow type, as its Parquet reader would see it."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return spark_type(kind.value_type)
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        name = "timestamp" if kind.tz else "timestamp_ntz"
        return f"{name} in nanoseconds" if kind.unit == "ns" else name
    if pa.types.is_struct(kind):
        return "struct<" + ",".join(f"{field.name}:{spark_type(field.type)}" for field in kind) + ">"
    if pa.types.is_map(kind):
        return f"map<{spark_type(kind.key_type)},{spark_type(kind.item_type)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{spark_type(kind.value_type)}>"
    names = {
        "string": "string", "large_string": "string", "int64": "bigint", "int32": "int", "int16": "smallint",
        "int8": "tinyint", "bool": "boolean", "double": "double", "float": "float", "date32[day]": "date",
        "binary": "binary", "large_binary": "binary",
    }  # fmt: skip
    return names.get(str(kind), str(kind))


def _fits(value: object, kind: str) -> bool:
    head = kind.partition("<")[0].partition("(")[0]
    if head in ("int", "bigint", "smallint", "tinyint"):
        return isinstance(value, int) and not isinstance(value, bool)
    if head in ("decimal", "double", "float"):
        return isinstance(value, int | float | str) and not isinstance(value, bool) and _numeric(value)
    if head == "boolean":
        return isinstance(value, bool)
    if head == "array":
        return isinstance(value, list)
    if head in ("struct", "map"):
        return isinstance(value, dict)
    if head in ("timestamp", "timestamp_ntz", "date"):
        return isinstance(value, str | int)
    return not isinstance(value, dict | list)


def _numeric(value: int | float | str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _drift(path: Path, what: str) -> SchemaDrift:
    return SchemaDrift(
        f"The file {path} {what}.",
        untouched=NOT_PLANNED,
        next_step="Mend the file, change the schema in the definition and run `twinstream replay`, or let such files "
        'in with FileSource(drift="ignore").',
    )
