"""What can be taken along: the report as a page and as JSON, the certificate, Great Expectations' pages."""

from __future__ import annotations

import json

from fastapi import APIRouter
from fastapi.responses import Response

from twinstream.reconcile.result import Reconciliation
from twinstream.report.as_json import to_json
from twinstream.report.html import to_html
from twinstream_airflow.web.data_docs import page_file
from twinstream_airflow.web.guards import Reader
from twinstream_airflow.web.routes.reconciliation import Id, certificate_of, find, result_of
from twinstream_airflow.web.where import Here, NotThere

router = APIRouter(prefix="/pipelines/{pipeline}")
ALONE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; base-uri 'none'"
"""For pages that bring their own style and have no script."""


@router.get("/reconciliations/{id}/report.html", include_in_schema=False)
def report_page(visitor: Reader, here: Here, pipeline: str, id: Id) -> Response:
    """The report as one page that needs nothing but itself, made from what the ledger keeps."""
    return _download(to_html(_result(here, pipeline, id)), "text/html; charset=utf-8", f"{pipeline}-{id}.html")


@router.get("/reconciliations/{id}/report.json", include_in_schema=False)
def report_json(visitor: Reader, here: Here, pipeline: str, id: Id) -> Response:
    """The report for programs."""
    return _download(to_json(_result(here, pipeline, id)), "application/json", f"{pipeline}-{id}.json")


@router.get("/reconciliations/{id}/certificate.json", include_in_schema=False)
def certificate(visitor: Reader, here: Here, pipeline: str, id: Id) -> Response:
    """The certificate of its frontier."""
    ledger, run = find(here, pipeline, id)
    found = certificate_of(here, ledger, pipeline, run)
    if found is None:
        raise NotThere(
            f"Reconciliation {id} of {pipeline} has no certificate.",
            untouched="",
            next_step="It was about a part of the result, or a newer one at the same txid took its place.",
        )
    text = json.dumps(found.content, indent=2, ensure_ascii=False) + "\n"
    return _download(text, "application/json", f"{pipeline}-{run.frontier}-certificate.json")


@router.get("/data-docs/{path:path}", include_in_schema=False)
def data_docs(visitor: Reader, here: Here, pipeline: str, path: str) -> Response:
    """One page of Great Expectations."""
    file = page_file(here.settings.home, pipeline, path)
    if file is None:
        raise NotThere(
            "There is no such page of Great Expectations.",
            untouched="",
            next_step="It may have been deleted; the reconciliation's own page shows what every expectation came to.",
        )
    return Response(file.read_bytes(), headers={"Content-Type": "text/html", "Content-Security-Policy": ALONE})


def _download(text: str, kind: str, name: str) -> Response:
    headers = {
        "Content-Type": kind,
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Security-Policy": ALONE,
    }
    return Response(text, headers=headers)


def _result(here: Here, pipeline: str, id: int) -> Reconciliation:
    _, run = find(here, pipeline, id)
    result = result_of(run)
    if result is None:
        raise NotThere(
            f"Reconciliation {id} of {pipeline} has no report: it runs still, or it failed.",
            untouched="",
            next_step="Its page says which.",
        )
    return result
