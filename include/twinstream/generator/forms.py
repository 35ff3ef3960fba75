"""What every file format of the generator can do; json_form and parquet_form are the two that exist."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import BinaryIO, Protocol

from twinstream.generator.kinds import Kind

Cell = object
Row = tuple[Cell, ...]
Record = object


class Writer(Protocol):
    """Puts records into a file; `close` writes what the format needs at its end."""

    def write(self, records: Sequence[Record]) -> None: ...

    def close(self) -> None: ...


class Form(Protocol):
    """A row travels as cells in the format's own terms (JSON text or Python values), so each value is encoded once."""

    suffix: str

    def cells(self, kind: Kind, values: Sequence[object]) -> list[Cell]:
        """Encode a column's values."""
        ...

    def time_cells(self, micros: Sequence[int]) -> list[Cell]:
        """Encode event times."""
        ...

    def records(self, rows: Sequence[Row]) -> list[Record]:
        """Turn rows into what the writer takes."""
        ...

    def poison(self, row: Row, micros: int, rng: Random) -> Record:
        """A record that must end as a dead letter, made from a good row."""
        ...

    def open(self, file: BinaryIO) -> Writer:
        """Begin to write into an empty file, which the caller closes after the writer."""
        ...
