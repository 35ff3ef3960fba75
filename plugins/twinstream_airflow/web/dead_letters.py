"""Dead letters of one txid, read from the sink's files without Spark, few and cut short."""

from __future__ import annotations

from typing import Any

from twinstream.ledger import Generation
from twinstream.pipeline import Definition
from twinstream.settings import Settings
from twinstream.sinks.delta import DeltaStore
from twinstream_airflow.web.models import DeadLetter, DeadLetters

MOST = 20
LONGEST = 400
_COLUMNS = ["_reason", "_file", "_occurrences", "_raw"]


def dead_letters(settings: Settings, definition: Definition, generation: Generation, txid: int) -> DeadLetters:
    """What could not be read; where the definition masks columns, records are not shown, as they hold them all."""
    import pyarrow.dataset as ds

    masked = bool(definition.pipeline.checks.mask)
    tables = settings.places(definition.name).resolve(definition.pipeline.table) / "_twinstream"
    store = DeltaStore(tables / generation.name, generation.name, {})
    named = store.snapshot().files.get("dead", ()) if store.exists() else ()
    paths = [store.folder / file.path for file in named if _may_hold(file, txid)]
    there = [str(path) for path in paths if path.exists()]
    if not there:
        return DeadLetters(total=0, letters=[], masked=masked)
    rows = ds.dataset(there, format="parquet").to_table(columns=_COLUMNS, filter=ds.field("_txid") == txid)
    letters = [_letter(row, masked) for row in rows.slice(0, MOST).to_pylist()]
    return DeadLetters(total=rows.num_rows, letters=letters, masked=masked)


def _may_hold(file: Any, txid: int) -> bool:
    return file.first_txid is None or file.last_txid is None or file.first_txid <= txid <= file.last_txid


def _letter(row: dict[str, Any], masked: bool) -> DeadLetter:
    return DeadLetter(
        reason=str(row["_reason"] or ""),
        file=str(row["_file"] or ""),
        occurrences=int(row["_occurrences"] or 1),
        record=None if masked else str(row["_raw"] or "")[:LONGEST],
    )
