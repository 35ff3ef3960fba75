"""Upkeep: fold, clean and scrub of a pipeline, and the ledger's backup."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from twinstream_airflow import settings
from twinstream_airflow.notes import note
from twinstream_airflow.operators.base import EngineOperator, SparkOperator, TwinstreamOperator
from twinstream_airflow.operators.skipping import Skipping
from twinstream_airflow.running.failures import in_airflows_words

if TYPE_CHECKING:
    from airflow.sdk import Context


class FoldOperator(SparkOperator):
    """Folds what was committed since the last base; starts nothing where there is nothing new."""

    command = "fold"

    def work(self, context: Context) -> dict[str, Any]:
        _require_wanted(context, self.pipeline)
        with self.engine() as engine:
            definition = engine.definition(self.pipeline)
            generation = engine.ledger.generations.current(self.pipeline)
            if generation is None or generation.frontier == 0:
                raise AirflowSkipException(f"{self.pipeline} has committed nothing yet.")
            bases = engine.store(definition, generation).bases()
            folded = max((base.frontier for base in bases), default=0)
        if folded >= generation.frontier:
            raise AirflowSkipException(f"The newest base is at the frontier, txid {folded}.")
        return super().work(context)


class CleanOperator(TwinstreamOperator):
    """Removes what no reader needs any more. Needs no Spark."""

    def work(self, context: Context) -> dict[str, Any]:
        from twinstream.batch.layer import BatchLayer

        _require_wanted(context, self.pipeline)
        with self.engine() as engine:
            if engine.ledger.generations.current(self.pipeline) is None:
                raise AirflowSkipException(f"{self.pipeline} has not been run yet.")
            done = engine.clean(self.pipeline)
            batches = BatchLayer(engine).clean(self.pipeline)
        return {"kept_from": done.kept_from, "removed": done.removed, "deleted": done.deleted, "batches": batches}


class ScrubOperator(SparkOperator):
    """Compares the stored rows with the digests that were logged at their commit; damage fails the task."""

    command = "scrub"

    def work(self, context: Context) -> dict[str, Any]:
        _require_wanted(context, self.pipeline)
        with self.engine() as engine:
            generation = engine.ledger.generations.current(self.pipeline)
            if generation is None or generation.frontier == 0:
                raise AirflowSkipException(f"{self.pipeline} has committed nothing yet.")
        result = super().work(context)
        if result["damaged"]:
            txids = ", ".join(str(one["txid"]) for one in result["damaged"][:20])
            note(context, f"{self.pipeline}: {len(result['damaged'])} txids are damaged")
            raise AirflowFailException(
                f"{self.pipeline}: the stored rows of {len(result['damaged'])} txids are not as they were committed "
                f"({txids}). Run {self.pipeline}__reconcile to see which rows, {self.pipeline}__repair to mend them."
            )
        return result


class BackupOperator(EngineOperator, Skipping):
    """Writes the ledger into one file below the home, keeps the newest few, and leaves out whom nobody asked for."""

    template_fields: Sequence[str] = ("keep",)
    inherits_from_skipmixin = True

    def __init__(self, *, keep: int | str = 7, **options: Any) -> None:
        super().__init__(**options)
        self.keep = keep

    def work(self, context: Context) -> dict[str, Any]:
        from twinstream.cli.standing import existing_ledger
        from twinstream.ledger.backup import backup

        with in_airflows_words():
            known = settings.of_task()
            folder = known.home / "backups"
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / f"ledger-{datetime.now(UTC):%Y%m%dT%H%M%S%f}.jsonl"
            with existing_ledger(known.ledger_url) as ledger:
                if ledger is None:
                    raise AirflowSkipException("There is no ledger yet.")
                rows = backup(ledger.database, file)
        for old in sorted(folder.glob("ledger-*.jsonl"))[: -int(self.keep)]:
            old.unlink()
        result = {"file": str(file), "rows": rows}
        after: Any = context["task"].get_flat_relatives(upstream=False)
        if unwanted := {task.task_id for task in after if not _is_wanted(context, task.pipeline)}:
            self.skip_some(context, result, unwanted)
        return result


def _require_wanted(context: Context, pipeline: str) -> None:
    """For tasks that are cleared, and where there was no backup that could leave them out."""
    if not _is_wanted(context, pipeline):
        raise AirflowSkipException(f"{pipeline} was not asked for.")


def _is_wanted(context: Context, pipeline: str) -> bool:
    """Nobody asking for any means all."""
    asked = context["params"].get("pipelines")
    return not asked or pipeline in asked
