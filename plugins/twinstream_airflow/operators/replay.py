"""Replay and promote: a new generation beside the current one, then the switch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from twinstream_airflow.notes import note
from twinstream_airflow.operators.base import SparkOperator, TwinstreamOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from twinstream.engine import Engine


class ReplayOperator(SparkOperator):
    """Builds a new generation from the whole source; readers see nothing of it until it is promoted."""

    command = "replay"

    def arguments(self) -> list[str]:
        return [self.pipeline, "--build-only"]

    def work(self, context: Context) -> dict[str, Any]:
        result = super().work(context)
        note(context, f"Generation {result['generation']} is built up to txid {result['frontier']}")
        return result

    def outcome(self, engine: Engine, said: Mapping[str, Any], asked: Mapping[str, str]) -> dict[str, Any]:
        return {name: said.get(name) for name in ("generation", "frontier", "verdict", "rows_changed")}


class PromoteOperator(TwinstreamOperator):
    """Makes the built generation the one that readers see; refused while it is behind. Needs no Spark."""

    def work(self, context: Context) -> dict[str, Any]:
        with self.engine() as engine:
            generation = engine.promote(self.pipeline)
        note(context, f"Generation {generation.number} is current, at txid {generation.frontier}")
        return {"generation": generation.number, "frontier": generation.frontier}
