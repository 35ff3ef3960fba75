"""Producing: rows of committed txids go to the pipeline's topic, in txid order, and how far is remembered.

What is sent was committed before, so that a runner that dies in between leaves two possibilities only: a txid is
remembered as produced, or its rows are sent again with the very same headers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinstream.errors import Refused
from twinstream.ledger import Generation, Lease, Ledger
from twinstream.ledger.generations import CURRENT
from twinstream.pipeline import Definition
from twinstream.runtime.read import partial_rows, view_after
from twinstream.sinks.delta import DeltaStore
from twinstream.sinks.kafka import HEADERS, KafkaSink
from twinstream.sinks.topic import TopicSender
from twinstream.sources.base import Places
from twinstream.transaction import Manifest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SERVED = "served"
"""In a range's payload: its rows reached the topic in real time, before there was a txid."""
SLICE_ROWS = 500_000
"""About so many rows are sent between two marks."""
LOOK_SECONDS = 1.0
"""How often a runner that sends makes sure that nobody has taken over."""


@dataclass(frozen=True)
class Producing:
    """Brings the topic of one generation up to what is committed."""

    spark: Callable[[], SparkSession]
    definition: Definition
    sink: KafkaSink
    ledger: Ledger
    generation: Generation
    store: DeltaStore
    places: Places

    def is_behind(self) -> bool:
        """Whether there is something committed that was not produced."""
        return self._is_current() and self.store.exists() and self.store.produced() < self.store.state().txid

    def produce(self, lease: Lease) -> None:
        """Sends what is committed and not remembered as produced; nothing of a generation that readers do not see."""
        if not self.is_behind():
            return
        sender = TopicSender(self.sink.topic, self.sink.connection, self.places.connections)
        try:
            start = self.store.produced()
            self._require_kept(start)
            for manifests in _slices(self.store.manifests(start + 1, self.store.state().txid)):
                self.ledger.leases.renew(lease)
                sent = [one.txid for one in manifests if one.accounting.rows_out and not is_served(one)]
                if sent:
                    sender.require()
                    self._send(sender, lease, manifests[0].txid - 1, manifests[-1].txid, sent)
                self.ledger.leases.renew(lease)
                self.store.note_produced(manifests[-1].txid, lease.epoch)
        finally:
            sender.close()

    def _send(self, sender: TopicSender, lease: Lease, after: int, last: int, txids: Sequence[int]) -> None:
        named = self.generation.name
        txid, sequence, looked = 0, 0, time.monotonic()
        for row in self._rows(after, last, txids).toLocalIterator():
            if time.monotonic() - looked > LOOK_SECONDS:
                self.ledger.leases.renew(lease)
                looked = time.monotonic()
            txid, sequence = row["_txid"], sequence + 1 if row["_txid"] == txid else 1
            values = (self.definition.name, named, str(txid), str(sequence), f"{named}:{txid}:{sequence}")
            sender.send(row["key"], row["value"], headers(values))
        sender.flush()

    def _rows(self, after: int, last: int, txids: Sequence[int]) -> DataFrame:
        """Key and value of every row, in the order of the files that the commit named: the same in every try."""
        from pyspark.sql import functions as F

        spark = self.spark()
        columns = self.definition.columns(spark)
        view = view_after(self.store, after, last)
        rows = partial_rows(spark, self.definition, columns, self.store, view, placed=True)
        key, value = self.sink.message(self.definition.pipeline, columns)
        rows = rows.where(F.col("_txid").isin(list(txids))).select("_txid", "_file", "_row", key, value)
        return rows.orderBy("_txid", "_file", "_row").select("_txid", "key", "value")

    def _require_kept(self, start: int) -> None:
        """A pipeline that had another sink before may have cleaned away what it would have to produce now."""
        kept, name = self.store.snapshot().kept_from, self.definition.name
        if start < kept:
            raise Refused(
                f"The rows of txids {start + 1} to {kept} of {name} were cleaned away before they could be produced to "
                f"the topic {self.sink.topic}.",
                untouched="Nothing was sent.",
                next_step=f"`twinstream replay {name}` builds a generation that is produced as a whole.",
            )

    def _is_current(self) -> bool:
        return self.ledger.generations.get(self.generation.id).state == CURRENT


def headers(values: Sequence[str]) -> list[tuple[str, str]]:
    """The headers of a row, from pipeline, generation, txid, sequence and the id made of them."""
    return [(f"twinstream-{name}", value) for name, value in zip(HEADERS, values, strict=True)]


def is_served(manifest: Manifest) -> bool:
    """Whether the rows of a txid are in the topic already."""
    found: Any = manifest.range.payload.get(SERVED)
    return bool(found)


def _slices(manifests: Sequence[Manifest]) -> Iterator[list[Manifest]]:
    """Consecutive txids with about as many rows as are sent at a time."""
    some: list[Manifest] = []
    rows = 0
    for manifest in manifests:
        some.append(manifest)
        rows += manifest.accounting.rows_out
        if rows >= SLICE_ROWS:
            yield some
            some, rows = [], 0
    if some:
        yield some
