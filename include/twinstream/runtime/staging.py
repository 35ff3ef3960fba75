"""Looking at what was staged: names, sizes, rows and txids of the files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twinstream.transaction import StagedFile


def staged_files(table: Path, staging: str) -> list[StagedFile]:
    """The Parquet files of an attempt, by kind; their rows and txids from the footers."""
    found = []
    for path in _parquet(table / staging):
        footer = _footer(path)
        column = next(n for n in range(footer.num_columns) if footer.schema.column(n).path == "_txid")
        spans = [footer.row_group(n).column(column).statistics for n in range(footer.num_row_groups)]
        found.append(
            StagedFile(
                kind=path.parent.name.removeprefix("_kind="),
                path=path.relative_to(table).as_posix(),
                size=path.stat().st_size,
                rows=footer.num_rows,
                first_txid=min(span.min for span in spans),
                last_txid=max(span.max for span in spans),
            )
        )
    return found


def base_files(table: Path, staging: str, frontier: int) -> list[StagedFile]:
    """The Parquet files of a base that have rows."""
    return [
        StagedFile("base", path.relative_to(table).as_posix(), path.stat().st_size, rows, frontier, frontier)
        for path in _parquet(table / staging)
        if (rows := _footer(path).num_rows)
    ]


def _parquet(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.parquet") if "_temporary" not in path.parts)


def _footer(path: Path) -> Any:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        return file.metadata
