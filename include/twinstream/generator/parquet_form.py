"""Parquet files; pyarrow is loaded only when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, BinaryIO

from twinstream.generator.far_future import far_future
from twinstream.generator.forms import Cell, Record, Row, Writer
from twinstream.generator.kinds import Kind
from twinstream.generator.times import TimeColumn


class ParquetForm:
    """Cells are Python values, records are rows."""

    suffix = "parquet"

    def __init__(self, kinds: Mapping[str, Kind], record_id: str, time: TimeColumn) -> None:
        self._kinds = kinds
        self._time = time
        self._id_at = list(kinds).index(record_id)
        self._time_at = list(kinds).index(time.name)

    def cells(self, kind: Kind, values: Sequence[object]) -> list[Cell]:
        return list(values)

    def time_cells(self, micros: Sequence[int]) -> list[Cell]:
        return [self._time.value(moment) for moment in micros]

    def records(self, rows: Sequence[Row]) -> list[Record]:
        return list(rows)

    def poison(self, row: Row, micros: int, rng: Random) -> Record:
        """Parquet is typed, so only three ways are left: no record id, no event time, far in the future."""
        spoiled = list(row)
        at, cell = rng.choice(
            [(self._id_at, None), (self._time_at, None), (self._time_at, self._time.value(far_future(micros)))]
        )
        spoiled[at] = cell
        return tuple(spoiled)

    def open(self, file: BinaryIO) -> Writer:
        return _Table(file, self._kinds)


class _Table:
    def __init__(self, file: BinaryIO, kinds: Mapping[str, Kind]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._pa: Any = pa
        self._schema = pa.schema([(name, _arrow(pa, kind)) for name, kind in kinds.items()])
        self._writer = pq.ParquetWriter(file, self._schema)

    def write(self, records: Sequence[Record]) -> None:
        columns = zip(*records, strict=True)
        arrays = [self._pa.array(list(cells), field.type) for cells, field in zip(columns, self._schema, strict=True)]
        self._writer.write_table(self._pa.Table.from_arrays(arrays, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


def _arrow(pa: Any, kind: Kind) -> Any:
    match kind.name:
        case "decimal":
            return pa.decimal128(kind.precision, kind.scale)
        case "array":
            assert kind.element is not None
            return pa.list_(_arrow(pa, kind.element))
        case "struct":
            return pa.struct([(name, _arrow(pa, field)) for name, field in kind.fields])
        case _:
            return {
                "string": pa.string(),
                "boolean": pa.bool_(),
                "tinyint": pa.int8(),
                "smallint": pa.int16(),
                "int": pa.int32(),
                "bigint": pa.int64(),
                "float": pa.float32(),
                "double": pa.float64(),
                "date": pa.date32(),
                "timestamp": pa.timestamp("us", tz="UTC"),
                "timestamp_ntz": pa.timestamp("us"),
            }[kind.name]
