"""Joining id files: many small ones become one, so that opening the table and making segments stay quick."""

from __future__ import annotations

from twinstream.failpoints import durable
from twinstream.runtime.ids.known import ID_COLUMNS, IDS
from twinstream.sinks.delta import DeltaStore
from twinstream.sinks.sync import sync_file, sync_folder
from twinstream.transaction import StagedFile

MANY = 48
LARGE = 16 * 1024 * 1024


def join_ids(store: DeltaStore) -> None:
    """Puts the rows of small id files into one file, in one commit; readers find the same ids before and after."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    small = [file for file in store.snapshot().files.get(IDS, ()) if file.size < LARGE]
    if len(small) < MANY:
        return
    names = ["_txid", *ID_COLUMNS]
    rows = pa.concat_tables(pq.read_table(store.folder / file.path, columns=names, partitioning=None) for file in small)
    path = store.folder / store.new_staging() / f"_kind={IDS}" / "joined.parquet"
    path.parent.mkdir(parents=True)
    with durable("stage.ids"):
        pq.write_table(rows, path, compression="snappy")
        sync_file(path)
        sync_folder(path.parent)
    span = pc.min_max(rows["_txid"]).as_py()
    name = path.relative_to(store.folder).as_posix()
    joined = StagedFile(IDS, name, path.stat().st_size, rows.num_rows, span["min"], span["max"])
    store.replace({IDS: small}, [joined], {IDS: span["max"]})
