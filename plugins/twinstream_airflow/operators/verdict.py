"""What follows a reconciliation: what Great Expectations said, the report, the verdict, the call for a repair."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from twinstream_airflow.dags.assets import verdict_asset
from twinstream_airflow.links import DataDocsLink, ReportLink
from twinstream_airflow.notes import note
from twinstream_airflow.operators.base import TwinstreamOperator
from twinstream_airflow.operators.batch import sentence, show_pages

if TYPE_CHECKING:
    from airflow.sdk import Context

DIFFERENT = "different"


class FollowingOperator(TwinstreamOperator):
    """Works on the result of an earlier task of the run."""

    template_fields: Sequence[str] = ("pipeline", "after")

    def __init__(self, *, after: str, **options: Any) -> None:
        super().__init__(**options)
        self.after = after

    def found(self, context: Context) -> Mapping[str, Any]:
        """What the earlier task found."""
        result = context["ti"].xcom_pull(task_ids=self.after)
        if not result:
            raise AirflowFailException(f"The task {self.after} has no result. Clear it to run it again.")
        return dict(result)


class ValidateOperator(FollowingOperator):
    """Tells what Great Expectations said about a reconciliation, expectation by expectation. Needs no Spark."""

    operator_extra_links = (DataDocsLink(),)

    def work(self, context: Context) -> dict[str, Any]:
        result = self.found(context)
        with self.engine() as engine:
            run = engine.ledger.runs.get(int(result["id"]))
        expectations = (run.result or {})["expectations"]
        for one in expectations:
            mark = "holds" if one["success"] else f"does not hold ({one['severity']})"
            self.log.info("%s: %s: %s %s", one["suite"], one["says"], mark, one["observed"])
        show_pages(self, context, result)
        failed = [one["says"] for one in expectations if not one["success"]]
        return {"expectations": len(expectations), "failed": failed}


class ReportOperator(FollowingOperator):
    """Puts the report into the log and links to its page. Needs no Spark."""

    operator_extra_links = (ReportLink(), DataDocsLink())

    def work(self, context: Context) -> str:
        from twinstream.report.as_json import from_json
        from twinstream.report.paths import report_path
        from twinstream.report.text import render

        result = self.found(context)
        with self.engine() as engine:
            path = report_path(engine.settings.home, self.pipeline, str(result["id"]), "json")
            for line in _plain(render(from_json(path.read_text(encoding="utf-8")))).splitlines():
                self.log.info("%s", line)
        show_pages(self, context, result)
        return str(result["report"])


class VerdictOperator(FollowingOperator):
    """Ends the run by the verdict: differences fail it, with one line that says how many, and everybody is told."""

    def __init__(self, *, pipeline: str, **options: Any) -> None:
        super().__init__(pipeline=pipeline, outlets=[verdict_asset(pipeline)], **options)

    def work(self, context: Context) -> dict[str, Any]:
        result = self.found(context)
        note(context, sentence(result))
        known = {name: result[name] for name in ("id", "generation", "frontier", "verdict", "differences")}
        context["outlet_events"][verdict_asset(self.pipeline)].extra = known
        if result["verdict"] == DIFFERENT:
            causes = "".join(f" {cause}" for cause in result["causes"])
            raise AirflowFailException(f"{self.pipeline}: {sentence(result)}.{causes} Report: {result['report']}")
        return known


class CallForRepairOperator(TriggerDagRunOperator):
    """Starts the repair of a finding, once for each finding, and does not wait for it."""

    template_fields: Sequence[str] = (*TriggerDagRunOperator.template_fields, "verdict")

    def __init__(self, *, after: str, **options: Any) -> None:
        pulled = f"ti.xcom_pull(task_ids='{after}')"
        super().__init__(
            trigger_run_id="reconciliation-{{ " + pulled + "['id'] }}",
            conf={"frontier": "{{ " + pulled + "['frontier'] }}"},
            skip_when_already_exists=True,
            **options,
        )
        self.verdict = "{{ " + pulled + "['verdict'] }}"

    def execute(self, context: Context) -> None:
        if self.verdict != DIFFERENT:
            raise AirflowSkipException(f"Nothing to repair: {self.verdict}.")
        assert isinstance(self.conf, dict)
        self.conf = {"frontier": int(self.conf["frontier"]), "dry_run": False}
        super().execute(context)


def _plain(rendered: Any) -> str:
    from rich.console import Console

    text = io.StringIO()
    Console(width=120, color_system=None, emoji=False, highlight=False, file=text).print(rendered)
    return text.getvalue()
