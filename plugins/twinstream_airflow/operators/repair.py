"""Repair: first what would change, then, once that is wanted, the repair itself with its proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twinstream_airflow.links import DataDocsLink, ReportLink, SparkLink
from twinstream_airflow.notes import note
from twinstream_airflow.operators.base import yes
from twinstream_airflow.operators.batch import FrontierCommand, sentence, show_pages, summary
from twinstream_airflow.operators.skipping import SkippingOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from twinstream.engine import Engine


class FindingOperator(FrontierCommand, SkippingOperator):
    """Reconciles again, so that nobody is asked about a finding that no longer holds; where it does not, or only a
    dry run was wanted, the rest of the run is skipped."""

    template_fields: Sequence[str] = ("pipeline", "spark", "frontier", "only_look")
    operator_extra_links = (SparkLink(), ReportLink(), DataDocsLink())
    command = "repair"

    def __init__(self, *, only_look: bool | str = False, **options: Any) -> None:
        super().__init__(**options)
        self.only_look = only_look

    def arguments(self) -> list[str]:
        return [*super().arguments(), "--dry-run"]

    def work(self, context: Context) -> dict[str, Any]:
        result = super().work(context)
        show_pages(self, context, result)
        if not result["differences"]:
            note(context, f"Nothing to repair: {sentence(result)}")
            self.skip_all(context, result)
        elif yes(self.only_look):
            note(context, f"Dry run: {sentence(result)}")
            self.skip_all(context, result)
        return result

    def outcome(self, engine: Engine, said: Mapping[str, Any], asked: Mapping[str, str]) -> dict[str, Any]:
        return summary(engine, self.newest_run(engine, "reconcile", asked))


class RepairOperator(FrontierCommand):
    """Makes the batch result the newest base and proves by another reconciliation that it helped."""

    template_fields: Sequence[str] = ("pipeline", "spark", "frontier", "force")
    operator_extra_links = (SparkLink(), ReportLink(), DataDocsLink())
    command = "repair"

    def __init__(self, *, force: bool | str = False, **options: Any) -> None:
        super().__init__(**options)
        self.force = force

    def arguments(self) -> list[str]:
        return [*super().arguments(), *(["--force"] if yes(self.force) else [])]

    def work(self, context: Context) -> dict[str, Any]:
        result = super().work(context)
        show_pages(self, context, result)
        return result

    def outcome(self, engine: Engine, said: Mapping[str, Any], asked: Mapping[str, str]) -> dict[str, Any]:
        after = summary(engine, self.newest_run(engine, "reconcile", asked))
        repair = self.newest_run(engine, "repair", asked)
        return {**after, "base": (repair.result or {}).get("base")}
