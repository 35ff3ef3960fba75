"""The first task of everything that works at a frontier: chooses it once, so that all that follow mean the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from twinstream_airflow.dags.assets import batch_asset
from twinstream_airflow.notes import note
from twinstream_airflow.operators.base import number
from twinstream_airflow.operators.skipping import SkippingOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


class FrontierOperator(SkippingOperator):
    """Takes the frontier that was asked for, else the one of the batch result that started the run, else the newest.

    Refuses one that the pipeline has not reached; skips the run where nothing is committed yet. `recompute` names the
    task to leave out where there is a batch result at that frontier already.
    """

    template_fields: Sequence[str] = ("pipeline", "frontier")

    def __init__(self, *, frontier: int | str | None = None, recompute: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.frontier = frontier
        self.recompute = recompute

    def work(self, context: Context) -> dict[str, Any]:
        from twinstream.batch.recompute import check_frontier
        from twinstream.batch.serve import newest_batch

        with self.engine() as engine:
            definition = engine.definition(self.pipeline)
            generation = engine.ledger.generations.current(self.pipeline)
            asked = number(self.frontier)
            if asked is None and (generation is None or generation.frontier == 0):
                self.log.info("%s has committed nothing yet.", self.pipeline)
                note(context, "Nothing is committed yet")
                result: dict[str, Any] = {"frontier": 0}
                self.skip_all(context, result)
                return result
            generation = engine.any_generation(definition)
            at = check_frontier(generation, asked or self._of_event(context, generation.name))
            found = newest_batch(engine.ledger, engine.settings.home, definition, generation, at)
        there = found is not None and found.frontier == at
        result = {"frontier": at, "generation": generation.number, "batch": there}
        self.log.info("Frontier: txid %s of generation %s.", at, generation.number)
        if there and self.recompute:
            self.log.info("There is a batch result at txid %s already.", at)
            self.skip_some(context, result, [self.recompute])
        return result

    def _of_event(self, context: Context, generation: str) -> int | None:
        """The frontier of the newest batch result that started this run, unless it is of another generation."""
        events = context["triggering_asset_events"]
        extras = [event.extra for event in events.get(batch_asset(self.pipeline), [])]
        mine = [int(extra["frontier"]) for extra in extras if extra.get("generation") == generation]
        return max(mine, default=None)
