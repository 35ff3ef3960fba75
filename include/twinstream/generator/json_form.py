"""JSON lines, put together from cells that are JSON text already: no encoder runs per event."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from random import Random
from typing import BinaryIO

from twinstream.generator.forms import Cell, Record, Row, Writer
from twinstream.generator.json_poison import JsonPoison
from twinstream.generator.kinds import Kind
from twinstream.generator.times import SECOND, TimeColumn, iso_second


class JsonForm:
    """Cells and records are strings."""

    suffix = "json"

    def __init__(self, kinds: Mapping[str, Kind], record_id: str, time: TimeColumn) -> None:
        self._time = time
        members = ",".join(f"{json.dumps(name).replace('%', '%%')}:%s" for name in kinds)
        self._template = f"{{{members}}}"
        self._poison = JsonPoison(kinds, record_id, time, self.time_cells)

    def cells(self, kind: Kind, values: Sequence[object]) -> list[Cell]:
        if kind.name == "string":
            return [json.dumps(value, ensure_ascii=False) for value in values]
        return [encode(value) for value in values]

    def time_cells(self, micros: Sequence[int]) -> list[Cell]:
        if self._time.kind.name not in {"timestamp", "string"}:
            return [encode(self._time.value(moment)) for moment in micros]
        seconds: dict[int, str] = {}
        cells: list[Cell] = []
        for moment in micros:
            second, rest = divmod(moment, SECOND)
            text = seconds.get(second)
            if text is None:
                text = seconds[second] = iso_second(second)
            cells.append(f'"{text}.{rest:06d}Z"')
        return cells

    def records(self, rows: Sequence[Row]) -> list[Record]:
        template = self._template
        return [template % row for row in rows]

    def poison(self, row: Row, micros: int, rng: Random) -> Record:
        return self._poison.spoil(row, micros, rng)

    def open(self, file: BinaryIO) -> Writer:
        return _Lines(file)


class _Lines:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, records: Sequence[Record]) -> None:
        self._file.write("".join(f"{record}\n" for record in records).encode())

    def close(self) -> None:
        """Lines need no end."""


def encode(value: object) -> str:
    """One value as JSON text: decimals keep their digits, which the standard encoder cannot do."""
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return f'"{value.strftime("%Y-%m-%dT%H:%M:%S.%f")}{"Z" if value.tzinfo else ""}"'
    if isinstance(value, date):
        return f'"{value.isoformat()}"'
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{encode(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(encode, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
