"""The batch layer of an engine: recompute and serve, for the command line, spark_jobs and Airflow alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinstream.batch.clean import clean_batches
from twinstream.batch.recompute import Recompute
from twinstream.batch.scope import EVERYTHING, Scope
from twinstream.batch.serve import batch_result, newest_batch, serving_result
from twinstream.engine import Engine
from twinstream.errors import Refused
from twinstream.ledger import Generation, Run
from twinstream.runtime.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class BatchLayer:
    """What an engine can do beside streaming."""

    engine: Engine

    def recompute(
        self,
        name: str,
        frontier: int | None = None,
        scope: Scope = EVERYTHING,
        *,
        accept_changes: bool = False,
        any_definition: bool = False,
        generation: Generation | None = None,
        progress: Progress | None = None,
        context: Mapping[str, str] | None = None,
    ) -> Run:
        """A new batch result at a frontier; `any_definition` allows one that the stream was not made by.

        It is about the current generation unless another one is given.
        """
        definition = self.engine.definition(name)
        if generation is None:
            find = self.engine.any_generation if any_definition else self.engine.generation
            generation = find(definition)
        fitted = scope.fitted(definition, self.engine.columns(definition))
        work = Recompute(
            self.engine.spark(), self.engine.ledger, definition, generation, self.engine.places(definition),
            self.engine.settings.home, progress or Progress(),
        )  # fmt: skip
        return work.run(frontier, fitted, accept_changes=accept_changes, context=context)

    def clean(self, name: str, retain_seconds: float | None = None) -> int:
        """Deletes batch results that nothing needs any more; says how many."""
        definition = self.engine.definition(name)
        generation = self.engine.generation(definition)
        retain = definition.pipeline.sink.retain_seconds if retain_seconds is None else retain_seconds
        return clean_batches(self.engine.ledger, generation.id, self.engine.settings.home, retain)

    def newest(self, name: str, at_most: int | None = None) -> Run | None:
        """The newest whole batch result."""
        definition = self.engine.definition(name)
        generation = self.engine.generation(definition)
        return newest_batch(self.engine.ledger, self.engine.settings.home, definition, generation, at_most)

    def read_batch(self, name: str, as_of: int | None = None) -> DataFrame:
        """The newest batch result (up to `as_of`)."""
        run = self.newest(name, as_of)
        if run is None:
            raise Refused(
                f"{name} has no batch result{'' if as_of is None else f' up to txid {as_of}'}.",
                next_step=f"Run `twinstream recompute {name}`.",
            )
        return batch_result(self.engine.spark(), self.engine.settings.home, run)

    def read_serving(self, name: str, as_of: int | None = None) -> DataFrame:
        """The newest batch result merged with what was streamed after it."""
        definition = self.engine.definition(name)
        generation = self.engine.generation(definition)
        store = self.engine.store(definition, generation)
        columns = definition.columns(self.engine.spark())
        run = self.newest(name, as_of)
        return serving_result(self.engine.spark(), definition, columns, store, self.engine.settings.home, run, as_of)
