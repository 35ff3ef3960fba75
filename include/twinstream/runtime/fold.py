"""Folding: the result as of a frontier becomes a numbered base, and the plain table for other engines is refreshed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from twinstream.failpoints import durable
from twinstream.pipeline import Definition
from twinstream.runtime.ids.join import join_ids
from twinstream.runtime.publish import publish
from twinstream.runtime.read import View, state_rows, view_of
from twinstream.runtime.staging import base_files
from twinstream.sinks.base import Base
from twinstream.sinks.delta import DeltaStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLD_FILES = 48
"""So many partial files after the base make reading slow enough to fold."""
FOLD_SHARE = 0.25
"""Fold only once the partials weigh so much against the base, so that folding stays cheap on the whole …"""
FOLD_FILES_AT_MOST = 400
"""… but never let more files than this pile up."""
APPEND_PARTS = 16
"""An append-only base is a list of parts; so many of them are joined into one again."""


@dataclass(frozen=True)
class Folded:
    """What a fold did; `number` is None if there was nothing to fold."""

    number: int | None
    frontier: int
    seconds: float


def wants_fold(view: View) -> bool:
    """Whether reading would be noticeably slower than after a fold."""
    count = len(view.partial_files)
    if count < FOLD_FILES:
        return False
    partial = sum(file.size for file in view.partial_files)
    base = sum(file.size for file in view.base_files)
    return partial >= FOLD_SHARE * base or count >= FOLD_FILES_AT_MOST


def fold(
    spark: SparkSession, definition: Definition, columns: Mapping[str, str], store: DeltaStore, published: Path
) -> Folded:
    """Adds the next base at the newest frontier; repeating it, or doing it twice at once, changes nothing."""
    started = time.monotonic()
    view = view_of(store)
    base = view.base
    if view.frontier == (base.frontier if base else 0):
        publish(spark, definition, columns, store, published)
        return Folded(None, view.frontier, time.monotonic() - started)
    number = store.state().base + 1
    parts: tuple[int, ...] = (number,)
    if definition.pipeline.operator.stateless and base is not None and len(base.parts) < APPEND_PARTS:
        parts = (*base.parts, number)
        view = View(view.frontier, view.watermark, view.base, (), view.partial_files, view.late_before)
    staging = store.new_staging()
    rows = state_rows(spark, definition, columns, store, view)
    with durable("stage.base"):
        rows.write.parquet(str(store.folder / staging))
    files = base_files(store.folder, staging, view.frontier)
    added = Base(number, view.frontier, parts, view.watermark, "fold", tuple(file.path for file in files))
    if not store.add_base(added, files):
        store.remove_staging(staging)
        return Folded(None, view.frontier, time.monotonic() - started)
    store.join_notes()
    join_ids(store)
    store.checkpoint()
    publish(spark, definition, columns, store, published)
    return Folded(number, view.frontier, time.monotonic() - started)
