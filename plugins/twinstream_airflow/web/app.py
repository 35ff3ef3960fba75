"""The FastAPI app that Airflow mounts: every route refuses whoever is not signed in, before anything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, Response
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException as StarletteHTTPException

import twinstream
from twinstream.errors import LedgerError, TwinstreamError
from twinstream.settings import Settings
from twinstream_airflow.web.guards import signed_in
from twinstream_airflow.web.pages import page, path_of, policy
from twinstream_airflow.web.routes import files, overview, pipeline, reconciliation, static, transaction
from twinstream_airflow.web.where import NotThere, Server

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_TITLES = {
    401: "Sign in first",
    403: "Not allowed",
    404: "Not found",
    422: "This address makes no sense",
    503: "Not available now",
}


def create_app(settings: Callable[[], Settings] | None = None) -> FastAPI:
    """The app; `settings` says where ledger, reports and definitions are."""
    app = FastAPI(
        title="Twinstream",
        version=twinstream.__version__,
        description="What the pages of Twinstream show. Everything here is read-only.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        dependencies=[Depends(signed_in)],
    )
    app.state.settings = settings or Server()
    app.add_middleware(SafeHeaders)
    for family in (overview, pipeline, transaction, reconciliation, files, static):
        app.include_router(family.router)

    @app.get("/openapi.json", include_in_schema=False)
    def schema() -> dict[str, Any]:
        """The API's description, for programs."""
        return app.openapi()

    app.add_exception_handler(StarletteHTTPException, _refused)
    app.add_exception_handler(TwinstreamError, _told)
    return app


class SafeHeaders:
    """Puts on every answer what keeps a browser from doing anything else with it than to show it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Content-Security-Policy", policy())
                headers.setdefault("Cache-Control", "no-store")
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Referrer-Policy"] = "same-origin"
            await send(message)

        await self._app(scope, receive, send_safely)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteHTTPException)
    says = str(error.detail)
    if error.status_code == 404 and not isinstance(error, HTTPException):
        says = "There is no such page."
    return _answer(request, error.status_code, _TITLES.get(error.status_code, "Error"), says, "")


async def _told(request: Request, error: Exception) -> Response:
    assert isinstance(error, TwinstreamError)
    status = 404 if isinstance(error, NotThere) else 503 if isinstance(error, LedgerError) else 500
    return _answer(request, status, error.title, error.what, error.next_step)


def _answer(request: Request, status: int, title: str, says: str, next_step: str) -> Response:
    if path_of(request).startswith(("/api/", "/openapi.json", "/static/")):
        return JSONResponse({"title": title, "detail": says, "next_step": next_step}, status)
    return page(request, "problem", status, title=title, says=says, next_step=next_step)
