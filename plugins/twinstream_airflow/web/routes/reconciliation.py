"""One reconciliation: the verdict, what differs and since when, expectations, the certificate."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from sqlalchemy.exc import NoResultFound

from twinstream.errors import Refused, ReportError
from twinstream.ledger import Ledger, Run
from twinstream.ledger.runs import RUNNING
from twinstream.ledger.verdicts import KIND, Judged, history
from twinstream.reconcile.certificate import load, seal
from twinstream.reconcile.result import Reconciliation
from twinstream.report import words
from twinstream.report.as_json import from_dict
from twinstream.report.flow import WIDTH, flow
from twinstream.report.heat import strip
from twinstream.report.plot import HEIGHT as PLOT_HEIGHT
from twinstream.report.plot import WIDTH as PLOT_WIDTH
from twinstream.report.plot import plot
from twinstream_airflow.web.actions import reconcile, repair
from twinstream_airflow.web.data_docs import pages_of
from twinstream_airflow.web.guards import Reader
from twinstream_airflow.web.lines import judgement
from twinstream_airflow.web.models import Judgement, Proof, ReconciliationFacts
from twinstream_airflow.web.pages import base_of, page
from twinstream_airflow.web.where import Here, NotThere, Place

router = APIRouter()
HISTORY = 60
Id = Annotated[int, Path(ge=1, le=2**53)]


@router.get("/api/pipelines/{pipeline}/reconciliations")
def reconciliations(visitor: Reader, here: Here, pipeline: str) -> list[Judgement]:
    """The newest reconciliations, newest first."""
    ledger, _ = here.generation(pipeline)
    return [judgement(one) for one in history(ledger.database, pipeline, HISTORY)]


@router.get("/api/pipelines/{pipeline}/reconciliations/{id}")
def reconciliation(visitor: Reader, here: Here, pipeline: str, id: Id) -> ReconciliationFacts:
    """One reconciliation in full."""
    ledger, run = find(here, pipeline, id)
    result = result_of(run)
    found = [repair(visitor, pipeline, run.frontier)] if result and words.differing(result.comparison) else []
    return ReconciliationFacts(
        pipeline=pipeline,
        judgement=judgement(_judged(run)),
        sentence=_sentence(run, result),
        report=dict(run.result) if result and run.result else None,
        history=[judgement(one) for one in history(ledger.database, pipeline, HISTORY)],
        certificate=certificate_of(here, ledger, pipeline, run),
        data_docs=pages_of(here.settings.home, pipeline, run),
        actions=[*found, reconcile(visitor, pipeline)],
    )


@router.get("/pipelines/{pipeline}/reconciliations", include_in_schema=False)
def newest_page(request: Request, visitor: Reader, here: Here, pipeline: str) -> RedirectResponse:
    """The newest one."""
    found = reconciliations(visitor, here, pipeline)
    if not found:
        raise NotThere(f"{pipeline} was never reconciled.", untouched="", next_step=f"Trigger {pipeline}__reconcile.")
    return RedirectResponse(f"{base_of(request)}/pipelines/{pipeline}/reconciliations/{found[0].id}", 303)


@router.get("/pipelines/{pipeline}/reconciliations/{id}", include_in_schema=False)
def reconciliation_page(request: Request, visitor: Reader, here: Here, pipeline: str, id: Id) -> HTMLResponse:
    """The page of one."""
    facts = reconciliation(visitor, here, pipeline, id)
    result = from_dict(facts.report) if facts.report else None
    drawn: dict[str, Any] = {}
    if result is not None:
        drawn = {
            "flow": flow(result.accounting),
            "strip": strip(result.comparison.heat),
            "plot": plot(result.txids),
            "expectations": words.by_weight(result.expectations),
        }
    return page(
        request, "reconciliation", facts=facts, result=result, flow_width=WIDTH, plot_width=PLOT_WIDTH,
        plot_height=PLOT_HEIGHT, **drawn,
    )  # fmt: skip


def find(here: Place, pipeline: str, id: int) -> tuple[Ledger, Run]:
    """A reconciliation of this pipeline and of no other, whoever asks."""
    ledger, _ = here.generation(pipeline)
    mine = {generation.id for generation in ledger.generations.of(pipeline)}
    try:
        run = ledger.runs.get(id)
    except NoResultFound:
        run = None
    if run is None or run.generation not in mine or run.kind != KIND:
        raise NotThere(
            f"{pipeline} has no reconciliation {id}.",
            untouched="",
            next_step="The pipeline's page lists those there are.",
        )
    return ledger, run


def result_of(run: Run) -> Reconciliation | None:
    """What was found; None as long as it runs, and where it failed."""
    return from_dict(run.result) if run.result and run.state not in (RUNNING, "failed") else None


def certificate_of(here: Place, ledger: Ledger, pipeline: str, run: Run) -> Proof | None:
    """The certificate of its frontier, where that one is about this very reconciliation."""
    generation = ledger.generations.get(run.generation)
    try:
        content = load(here.settings.home, pipeline, generation.name, run.frontier)
    except (Refused, ReportError):
        return None
    if str(content.get("reconciliation")) != str(run.id):
        return None
    return Proof(content=content, sealed=content.get("seal") == seal(content))


def _judged(run: Run) -> Judged:
    found = run.result or {}
    done = bool(found) and run.state != RUNNING
    return Judged(
        run.id, run.generation, run.frontier, run.state, found.get("verdict") if done else None,
        found["comparison"]["counts"] if done and "comparison" in found else {}, not run.scope, run.started_at,
        run.ended_at, run.error,
    )  # fmt: skip


def _sentence(run: Run, result: Reconciliation | None) -> str:
    if result is not None:
        return words.sentence(result)
    if run.state == RUNNING:
        return f"Stream and batch are being compared as of txid {words.number(run.frontier)}."
    return f"The reconciliation failed: {run.error or 'without a word'}"
