"""Turns facts into pages: every value is escaped, and a page may load nothing but the app's own style and script."""

from __future__ import annotations

import re
import secrets
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import HTMLResponse

from twinstream.report import words
from twinstream_airflow.web.mount import PREFIX
from twinstream_airflow.web.times import span

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_CODE = re.compile(r"`([^`]+)`")


def base_of(request: Request) -> str:
    """The app's own address, behind whatever base path Airflow has."""
    return str(request.scope.get("root_path", "")).rstrip("/")


def path_of(request: Request) -> str:
    """The path within the app."""
    return request.url.path.removeprefix(base_of(request)) or "/"


def page(request: Request, view: str, status: int = 200, **facts: Any) -> HTMLResponse:
    """A page; the few styles that depend on data are its own and carry its nonce."""
    nonce = secrets.token_urlsafe(12)
    base = base_of(request)
    text = _environment().get_template(f"{view}.jinja").render(
        base=base, airflow=base.removesuffix(PREFIX), nonce=nonce, path=path_of(request), query=request.query_params,
        **facts,
    )  # fmt: skip
    return HTMLResponse(text, status, {"Content-Security-Policy": policy(nonce)})


def policy(nonce: str = "") -> str:
    """What a page may do: nothing from outside, no code of its own, shown only inside Airflow."""
    style = f"'self' 'nonce-{nonce}'" if nonce else "'self'"
    return (
        f"default-src 'none'; script-src 'self'; style-src {style}; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'self'; base-uri 'none'"
    )


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("twinstream_airflow.web", "views"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        "number": words.number,
        "rate": words.rate,
        "span": span,
        "slug": lambda kind: re.sub(r"[^a-z]+", "-", str(kind).lower()),
        "quoted": lambda text: quote(str(text), safe=""),
        "coded": _coded,
    }
    environment.filters.update(filters)
    environment.globals["words"] = words
    return environment


def _coded(text: str) -> Markup:
    """Escaped text in which `commands` stand out."""
    from markupsafe import Markup, escape

    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # the text was escaped before
