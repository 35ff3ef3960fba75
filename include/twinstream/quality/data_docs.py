"""Data Docs that can be opened anywhere: values are shown as text, and nothing is fetched from outside.

Great Expectations writes many values into its pages as they are, and loads styles and scripts from the web. Here
values are shielded before its renderers see them, and unshielded as entities in the finished page, so that each is
escaped exactly once. Only Great Expectations imports this module, by the names in its configuration.
"""

from __future__ import annotations

import copy
import html
import re
from functools import cache
from importlib.resources import files
from typing import Any

from great_expectations import ExpectationSuite  # noqa: TID253
from great_expectations.render.renderer.page_renderer import (  # noqa: TID253
    ExpectationSuitePageRenderer,
    ValidationResultsPageRenderer,
)
from great_expectations.render.view.view import DefaultJinjaPageView  # noqa: TID253

_SHIELDS = {"<": "\ue0f0", ">": "\ue0f1", "&": "\ue0f2", '"': "\ue0f3", "'": "\ue0f4", "$": "\ue0f5"}
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;", "'": "&#39;", "$": "&#36;"}
_SHIELD = str.maketrans(_SHIELDS)
_UNSHIELD = str.maketrans({mark: _ENTITIES[sign] for sign, mark in _SHIELDS.items()})
_ACTIVE = re.compile(
    r"<(?P<tag>script|style)\b.*?</(?P=tag)>|<link\b[^>]*>|<img\b[^>]*>|\son\w+=\"[^\"]*\"", re.IGNORECASE | re.DOTALL
)
"""Scripts and handlers, styles, and all that is fetched."""
_TWICE = re.compile(r"Data asset: None<br>\s*(<span class=\"h6\" >Status:</span> <i [^>]*></i>) (?:Failed|Succeeded)")
"""What is said twice, or says nothing: our style writes the status out, and a frame in memory has no name."""


class ValidationPage(ValidationResultsPageRenderer):
    """The page of one suite's results."""

    def render(self, validation_results: Any, suite_parameters: Any = None) -> Any:
        shielded = copy.deepcopy(validation_results)
        for one in shielded.results:
            one.result = shield(one.result)
            one.exception_info = shield(one.exception_info)
            config = one.expectation_config
            config.kwargs = shield(config.kwargs)
            config.description = shield(config.description)
            config.meta = shield(config.meta)
            config.notes = shield(config.notes)
        return super().render(shielded, suite_parameters)


class SuitePage(ExpectationSuitePageRenderer):
    """The page of one suite."""

    def render(self, expectations: Any) -> Any:
        return super().render(ExpectationSuite(**shield(expectations.to_json_dict())))  # type: ignore[no-untyped-call]


class PageView(DefaultJinjaPageView):
    """A page that needs nothing but itself."""

    def render(self, document: Any, template: Any = None, **kwargs: Any) -> str:
        return self_contained(super().render(document, template, **kwargs))  # type: ignore[no-untyped-call]


class Index:
    """The list of all runs, as Great Expectations gathers it."""

    def __init__(self, data_context: Any = None) -> None:
        pass

    def render(self, links: dict[str, Any]) -> dict[str, Any]:
        return links


class IndexView:
    """The list of all runs, newest first."""

    def __init__(self, custom_styles_directory: Any = None, custom_views_directory: Any = None) -> None:
        pass

    def render(self, document: dict[str, Any], **kwargs: Any) -> str:
        runs = sorted(document.get("validations_links", []), key=lambda run: str(run["run_time"]), reverse=True)
        rows = "".join(
            f"<tr><td>{_status(run['validation_success'])}</td>"
            f'<td><a href="{html.escape(run["filepath"])}">{html.escape(run["expectation_suite_name"])}</a></td>'
            f"<td>{html.escape(str(run['run_name']))}</td><td>{html.escape(str(run['run_time'])[:19])}</td></tr>"
            for run in runs
        )
        return (
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Data Docs</title>'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_style()}</style></head>'
            '<body><h1>Validations</h1><div class="ge-section"><table><thead><tr><th>Status</th><th>Suite</th>'
            f"<th>Frontier</th><th>Run at (UTC)</th></tr></thead><tbody>{rows}</tbody></table></div></body></html>"
        )


def shield(value: Any) -> Any:
    """A value in which no character means anything to HTML or to Great Expectations' templates."""
    if isinstance(value, str):
        return value.translate(_SHIELD)
    if isinstance(value, dict):
        return {shield(key): shield(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(shield(item) for item in value)
    return value


def self_contained(page: str) -> str:
    """The page without styles, scripts and pictures of others, with a style of its own, and values as text."""
    page = _TWICE.sub(r"\1", _ACTIVE.sub("", page))
    return page.replace("</head>", f"<style>{_style()}</style></head>", 1).translate(_UNSHIELD)


def _status(success: bool) -> str:
    name = "fa-check-circle text-success" if success else "fa-times text-danger"
    return f'<i class="fas {name}"></i>'


@cache
def _style() -> str:
    return files("twinstream.quality").joinpath("data_docs.css").read_text(encoding="utf-8")
