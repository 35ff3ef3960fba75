"""The report as one page that needs nothing but itself: no script, no outside asset, light and dark, printable."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from twinstream.reconcile.result import Reconciliation
from twinstream.report import words
from twinstream.report.flow import WIDTH, flow
from twinstream.report.heat import strip
from twinstream.report.plot import HEIGHT as PLOT_HEIGHT
from twinstream.report.plot import WIDTH as PLOT_WIDTH
from twinstream.report.plot import plot

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

_CODE = re.compile(r"`([^`]+)`")


def to_html(result: Reconciliation) -> str:
    """The page; every value of the data is escaped."""
    return template("report.html.jinja").render(
        result=result,
        flow=flow(result.accounting),
        flow_width=WIDTH,
        strip=strip(result.comparison.heat),
        plot=plot(result.txids),
        plot_width=PLOT_WIDTH,
        expectations=words.by_weight(result.expectations),
    )


@cache
def template(name: str) -> Template:
    """A page of the templates folder; what is put in is escaped, and what is missing is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("twinstream.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"words": words, "plot_height": PLOT_HEIGHT}  # for the style sheet that all pages share
    environment.filters["number"] = words.number
    environment.filters["slug"] = lambda kind: str(kind).replace(" ", "-")
    environment.filters["coded"] = _coded
    return environment.get_template(name)


def _coded(text: str) -> Markup:
    """Escaped text in which `commands` stand out."""
    from markupsafe import Markup, escape

    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # the text was escaped before
