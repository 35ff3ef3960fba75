"""The batch layer: recompute, reconcile, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException

from twinstream_airflow.dags.assets import batch_asset
from twinstream_airflow.links import DataDocsLink, ReportLink, SparkLink, data_docs_page, reconciliation_page, show
from twinstream_airflow.notes import note
from twinstream_airflow.operators.base import SparkOperator, number, yes

if TYPE_CHECKING:
    from airflow.sdk import Context

    from twinstream.engine import Engine
    from twinstream.ledger import Run


class FrontierCommand(SparkOperator):
    """A command that works at a frontier and leaves a run in the ledger."""

    template_fields: Sequence[str] = ("pipeline", "spark", "frontier")

    def __init__(self, *, frontier: int | str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.frontier = frontier

    def arguments(self) -> list[str]:
        at = number(self.frontier)
        return [self.pipeline] if at is None else [self.pipeline, f"--frontier={at}"]

    def newest_run(self, engine: Engine, kind: str, asked: Mapping[str, str]) -> Run:
        """What this task did, by the ledger."""
        found = engine.ledger.runs.asked_by(kind, asked)
        if not found or found[0].result is None:
            raise AirflowException(f"The ledger has no finished {kind} of this task. Clear the task to run it again.")
        return found[0]


class RecomputeOperator(FrontierCommand):
    """The result anew from the source; `emits` where its asset is to have an event."""

    command = "recompute"

    def __init__(self, *, emits: bool = False, **options: Any) -> None:
        super().__init__(outlets=[batch_asset(options["pipeline"])] if emits else [], **options)
        self.emits = emits

    def work(self, context: Context) -> dict[str, Any]:
        result = super().work(context)
        if self.emits:
            context["outlet_events"][batch_asset(self.pipeline)].extra = result
        note(context, f"Recomputed as of txid {result['frontier']}: {result['rows']} rows")
        return result

    def outcome(self, engine: Engine, said: Mapping[str, Any], asked: Mapping[str, str]) -> dict[str, Any]:
        run = self.newest_run(engine, "recompute", asked)
        counted = run.result or {}
        return {
            "run": run.id,
            "generation": engine.ledger.generations.get(run.generation).name,
            "frontier": run.frontier,
            "records": counted["records"],
            "late": counted["late_records"],
            "rows": counted.get("rows"),
        }


class ReconcileOperator(FrontierCommand):
    """Compares stream and batch row by row, validates with Great Expectations, and writes the report.

    Differences do not fail this task: what follows tells of them.
    """

    template_fields: Sequence[str] = ("pipeline", "spark", "frontier", "fresh")
    operator_extra_links = (SparkLink(), ReportLink(), DataDocsLink())
    command = "reconcile"

    def __init__(self, *, fresh: bool | str = False, **options: Any) -> None:
        super().__init__(**options)
        self.fresh = fresh

    def arguments(self) -> list[str]:
        return [*super().arguments(), *(["--fresh"] if yes(self.fresh) else [])]

    def work(self, context: Context) -> dict[str, Any]:
        result = super().work(context)
        show_pages(self, context, result)
        return result

    def outcome(self, engine: Engine, said: Mapping[str, Any], asked: Mapping[str, str]) -> dict[str, Any]:
        return summary(engine, self.newest_run(engine, "reconcile", asked))


def summary(engine: Engine, run: Run) -> dict[str, Any]:
    """A reconciliation in a few facts, small enough to be handed from task to task."""
    from twinstream.reconcile.result import Difference
    from twinstream_airflow.web.data_docs import pages_of

    found = run.result or {}
    pipeline = found["pipeline"]
    counts = found["comparison"]["counts"]
    asked = found["expectations"]
    page = reconciliation_page(pipeline, run.id)
    checked = pages_of(engine.settings.home, pipeline, run)
    return {
        "id": str(run.id),
        "pipeline": pipeline,
        "generation": found["generation"],
        "frontier": run.frontier,
        "verdict": found["verdict"],
        "differences": {kind: count for kind, count in counts.items() if count and kind != Difference.LATE},
        "txids": [one["txid"] for one in found["txids"]][:100],
        "causes": found["causes"],
        "expectations": len(asked),
        "failed": [one["says"] for one in asked if not one["success"]],
        "report": page,
        "data_docs": data_docs_page(pipeline, checked[0].path) if checked else page,
    }


def show_pages(operator: Any, context: Context, result: Mapping[str, Any]) -> None:
    """Links to the report and to Data Docs."""
    show(operator, context["ti"], ReportLink(), result["report"])
    show(operator, context["ti"], DataDocsLink(), result["data_docs"])


def sentence(result: Mapping[str, Any]) -> str:
    """A verdict as people say it."""
    text = f"{str(result['verdict']).capitalize()} as of txid {result['frontier']}"
    differences = ", ".join(f"{count} {kind}" for kind, count in result["differences"].items())
    return f"{text}: {differences} rows" if differences else text
