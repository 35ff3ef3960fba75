"""Planning: what is new becomes txids; where there is nothing to do, nothing that follows is started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from twinstream_airflow.notes import note
from twinstream_airflow.operators.base import number
from twinstream_airflow.operators.skipping import SkippingOperator
from twinstream_airflow.pausing import held, paused

if TYPE_CHECKING:
    from airflow.sdk import Context


class PlanOperator(SkippingOperator):
    """Logs what is new in the source; skips the rest of the run where no txid is open. Needs no Spark."""

    template_fields: Sequence[str] = ("pipeline", "batch_records")

    def __init__(self, *, batch_records: int | str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.batch_records = batch_records

    def work(self, context: Context) -> dict[str, Any]:
        with self.engine() as engine:
            definition = engine.definition(self.pipeline)
            generation = engine.generation(definition, create=True)
            reason = paused(engine.ledger, generation.id)
            if said := f"Paused: {reason}" if reason else held(engine.ledger, generation.id):
                self.log.info("%s: %s", self.pipeline, said)
                note(context, said)
                result: dict[str, Any] = {"planned": 0, "left": said}
                self.skip_all(context, result)
                return result
            found = engine.plan(definition, generation, number(self.batch_records))
            txids, records, size, _ = engine.ledger.batches.backlog(generation.id)
            if found.problem is not None and not txids:
                raise found.problem
        result = {"planned": len(found.txids), "txids": txids, "records": records, "bytes": size}
        if txids:
            self.log.info("%s txids with %s records are to be drained.", txids, records)
        else:
            self.log.info("Nothing to do: %s is at its frontier, txid %s.", self.pipeline, generation.frontier)
            self.skip_all(context, result)
        return result
