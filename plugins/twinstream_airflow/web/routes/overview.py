"""Every pipeline that the user may see: what wants attention first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from twinstream.ledger.standings import standings
from twinstream.report.words import number
from twinstream.runtime.status import moment
from twinstream_airflow.web.guards import Signed, dag_of
from twinstream_airflow.web.lines import RANKS, line_of
from twinstream_airflow.web.models import BrokenLine, Overview, PipelineLine, Tile
from twinstream_airflow.web.pages import base_of, page
from twinstream_airflow.web.where import Here

router = APIRouter()
Show = Literal["all", "attention"]


@router.get("/api/pipelines")
def overview(visitor: Signed, here: Here, q: str = "", show: Show = "all") -> Overview:
    """Where every pipeline stands; `q` is a part of a name, `attention` leaves out what is well."""
    now, found = standings(here.ledger.database) if here.ledger else (0, [])
    standing = {one.pipeline: one for one in found}
    allowed = visitor.readable({*standing, *here.catalog.definitions})
    lines = [line_of(name, standing.get(name), here.definition(name), now) for name in sorted(allowed)]
    named = [line for line in lines if q.strip().lower() in line.name.lower()]
    shown = [line for line in named if show == "all" or line.tone in ("bad", "warn")]
    broken = [
        BrokenLine(file=one.file.name, says=one.error.what, next_step=one.error.next_step)
        for one in here.catalog.broken
        if visitor.may_read_dag(dag_of(one.file.stem, "broken"))
    ]
    return Overview(
        now=moment(now) or "",
        total=len(lines),
        pipelines=sorted(shown, key=lambda line: (RANKS[line.tone], line.name)),
        broken=broken,
        tiles=_tiles(shown),
    )


@router.get("/", include_in_schema=False)
def overview_page(request: Request, visitor: Signed, here: Here, q: str = "", show: Show = "all") -> HTMLResponse:
    """The page of it."""
    facts = overview(visitor, here, q, show)
    return page(request, "overview", facts=facts, q=q, show=show, folder=here.settings.pipelines)


@router.get("/tab", include_in_schema=False, response_model=None)
def tab(request: Request, visitor: Signed, here: Here, dag_id: str = "") -> HTMLResponse | RedirectResponse:
    """The tab on a DAG or a run: its pipeline's page, all of them where it is about all, or one calm sentence."""
    name, sign, _ = dag_id.partition("__")
    known = name in here.catalog.definitions or bool(here.ledger and here.ledger.generations.current(name))
    if sign and known and visitor.may_read(name):
        return RedirectResponse(f"{base_of(request)}/pipelines/{name}", 303)
    if sign and name == "twinstream":
        return RedirectResponse(f"{base_of(request)}/", 303)
    return page(request, "not_ours", dag_id=dag_id)


def _tiles(lines: Sequence[PipelineLine]) -> list[Tile]:
    bad = sum(line.tone == "bad" for line in lines)
    doubts = sum(line.tone == "warn" for line in lines)
    differing = sum(line.verdict.differing for line in lines if line.verdict)
    judged = [line.verdict for line in lines if line.verdict]
    equal = sum(one.verdict == "equal" for one in judged)
    held = sum(line.open.get("HELD", 0) for line in lines)
    waiting = sum(sum(line.open.values()) for line in lines)
    return [
        Tile(label="pipelines", value=len(lines), note=f"{number(equal)} proven equal"),
        Tile(label="failing", value=bad, tone="bad" if bad else "none"),
        Tile(label="with a warning", value=doubts, tone="warn" if doubts else "none"),
        Tile(label="differing rows", value=differing, tone="bad" if differing else "none"),
        Tile(label="open txids", value=waiting, note=f"{number(held)} held" if held else ""),
    ]
