"""The pages' style and script. They are guarded like everything else."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter, HTTPException
from fastapi.responses import Response

router = APIRouter()
_KINDS = {"twinstream.css": "text/css; charset=utf-8", "twinstream.js": "text/javascript; charset=utf-8"}


@router.get("/static/{name}", include_in_schema=False)
def asset(name: str) -> Response:
    """One of the two files that there are."""
    if name not in _KINDS:
        raise HTTPException(404, "There is no such file.")
    text = files("twinstream_airflow.web").joinpath("static", name).read_text(encoding="utf-8")
    return Response(text, headers={"Content-Type": _KINDS[name], "Cache-Control": "private, max-age=60"})
