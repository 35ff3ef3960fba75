"""Files on their way into a table: seen to be there before a commit, synced, and told to the Delta log."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twinstream.errors import StagedFileMissing
from twinstream.failpoints import durable
from twinstream.sinks.sync import sync_file, sync_folder
from twinstream.transaction import StagedFile


def require_staged(folder: Path, files: Sequence[StagedFile]) -> None:
    """Before a commit every staged file is seen to be there, with its size, and is made durable."""
    folders: set[Path] = set()
    for file in files:
        path = folder / file.path
        try:
            size = os.stat(path).st_size
        except FileNotFoundError:
            size = -1
        if size != file.size:
            raise StagedFileMissing(
                f"The staged file {path} is gone or has another size than when it was written.",
                untouched="Nothing of its txids was committed.",
                next_step="The txids are processed again by the next `twinstream drain`.",
            )
        sync_file(path)
        folders.update((path.parent, path.parent.parent, path.parent.parent.parent))
    for parent in folders:
        sync_folder(parent)


def write_notes(folder: Path, kind: str, beside: Sequence[StagedFile], rows: Sequence[tuple[int, str]]) -> StagedFile:
    """Writes the small file that tells of a commit; unnamed until the commit itself names it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    where = Path(beside[0].path).parent if beside else Path("_data/notes")
    path = folder / where / f"{kind}-{secrets.token_hex(8)}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(
        {"_txid": pa.array([txid for txid, _ in rows], pa.int64()), "_manifest": [text for _, text in rows]}
    )
    with durable("sink.notes"):
        pq.write_table(table, path, compression="zstd")
        sync_file(path)
        sync_folder(path.parent)
    txids = [txid for txid, _ in rows]
    return StagedFile(kind, path.relative_to(folder).as_posix(), path.stat().st_size, len(rows), min(txids), max(txids))


def add_action(file: StagedFile, base: int | None = None) -> Any:
    """The entry of the Delta log that names a file."""
    from deltalake.transaction import AddAction

    stats = {
        "numRecords": file.rows,
        "minValues": {"_txid": file.first_txid},
        "maxValues": {"_txid": file.last_txid},
        "nullCount": {"_txid": 0},
    }
    return AddAction(
        path=file.path,
        size=file.size,
        partition_values=partition(file.kind, base),
        modification_time=int(time.time() * 1000),
        data_change=True,
        stats=json.dumps(stats),
    )


def partition(kind: str, base: int | None) -> dict[str, str | None]:
    """The partition of a table that holds a kind of rows."""
    return {"_kind": kind, "_base": None if base is None else str(base)}
