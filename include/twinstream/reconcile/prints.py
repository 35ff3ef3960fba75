"""What is kept of a batch table beside it: its digests and, for counts and sums, its linear fingerprint.

A later reconciliation sees by them whether the table was altered, and can go on from them without reading it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from twinstream.failpoints import durable
from twinstream.pipeline import Definition
from twinstream.reconcile.digests import FORM, BucketDigests, digest
from twinstream.reconcile.key import result_key
from twinstream.reconcile.linear import LinearFingerprint, linear_fingerprint, linear_measures
from twinstream.reconcile.shape import shape_of
from twinstream.sinks.sync import sync_file, sync_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILE = "prints.json"


@dataclass(frozen=True)
class Prints:
    """The fingerprints of one result."""

    digests: BucketDigests
    linear: LinearFingerprint | None


def prints_of(rows: DataFrame, definition: Definition, columns: Mapping[str, str]) -> Prints:
    """The fingerprints of result rows."""
    operator = definition.pipeline.operator
    made = digest(rows, shape_of(rows.schema, result_key(definition, columns)))
    return Prints(made, linear_fingerprint(rows, operator) if linear_measures(operator) else None)


def save_prints(folder: Path, prints: Prints) -> None:
    """Writes them beside the table; they appear whole or not at all."""
    content = {
        "digests": json.loads(prints.digests.to_json()),
        "linear": None if prints.linear is None else json.loads(prints.linear.to_json()),
    }
    path = folder / FILE
    temporary = path.with_name(f".{FILE}.tmp")
    with durable("batch.prints"):
        temporary.write_text(json.dumps(content), encoding="utf-8")
        sync_file(temporary)
        temporary.replace(path)
        sync_folder(folder)


def load_prints(folder: Path) -> Prints | None:
    """What was kept of a batch table; None if it is gone, unreadable or of an older form: the table still has it."""
    try:
        content = json.loads((folder / FILE).read_text(encoding="utf-8"))
        linear = content["linear"]
        digests = BucketDigests.from_json(json.dumps(content["digests"]))
        made = None if linear is None else LinearFingerprint.from_json(json.dumps(linear))
        return Prints(digests, made) if digests.form == FORM else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
