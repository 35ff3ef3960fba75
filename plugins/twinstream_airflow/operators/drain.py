"""Draining: all that is planned in as few Spark jobs as possible, committed exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from twinstream_airflow.dags.assets import stream_asset
from twinstream_airflow.notes import note
from twinstream_airflow.operators.base import SparkOperator, number
from twinstream_airflow.pausing import held

if TYPE_CHECKING:
    from airflow.sdk import Context

    from twinstream.engine import Engine


class DrainOperator(SparkOperator):
    """Commits what is planned; safe to repeat, to clear and to run twice at once."""

    template_fields: Sequence[str] = ("pipeline", "spark", "max_batches", "batch_records")
    command = "drain"

    def __init__(
        self, *, max_batches: int | str | None = None, batch_records: int | str | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self.max_batches = max_batches
        self.batch_records = batch_records

    def arguments(self) -> list[str]:
        chosen = {"--max-batches": number(self.max_batches), "--batch-records": number(self.batch_records)}
        return [self.pipeline, *(f"{name}={value}" for name, value in chosen.items() if value is not None)]

    def look(self, context: Context) -> None:
        with self.engine() as engine:
            generation = engine.any_generation(engine.definition(self.pipeline))
            if said := held(engine.ledger, generation.id):
                note(context, said)
                raise AirflowSkipException(f"{said}: what is planned is committed there.")

    def work(self, context: Context) -> dict[str, Any]:
        result = super().work(context)
        if result["txids"]:
            context["outlet_events"][stream_asset(self.pipeline)].extra = {
                name: result[name] for name in ("generation", "frontier", "watermark", "txids")
            }
        txids = "1 txid" if result["txids"] == 1 else f"{result['txids']} txids"
        note(context, f"{txids} committed, frontier {result['frontier']}")
        return result

    def outcome(self, engine: Engine, said: Mapping[str, Any], asked: Mapping[str, str]) -> dict[str, Any]:
        """What all tries of this task committed together, by the ledger."""
        from twinstream.runtime.status import moment
        from twinstream.transaction import Outcome

        generation = engine.any_generation(engine.definition(self.pipeline))
        mine = engine.ledger.attempts.asked_by(generation.id, asked)
        spans = [[one.first, one.last] for one in mine if one.outcome is Outcome.COMMITTED]
        return {
            "generation": generation.number,
            "txids": sum(last - first + 1 for first, last in spans),
            "spans": spans,
            "frontier": generation.frontier,
            "watermark": moment(generation.watermark),
            "late": said["late"],
            "dead": said["dead"],
            "duplicate": said["duplicate"],
        }
