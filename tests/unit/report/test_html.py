"""The page needs nothing but itself, shows every value as text, and can be read by everybody."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from tests.unit.report.results import ALL, HOSTILE, comparison, different, hostile, result
from twinstream.reconcile.result import Difference, Verdict
from twinstream.report.html import to_html

_VOID = {"meta", "link", "br", "img", "rect", "path", "hr"}


class Page(HTMLParser):
    """Elements, their attributes and texts; refuses a page whose elements do not close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if "style" not in self._open:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


@pytest.mark.parametrize("name", ALL)
def test_a_page_fetches_nothing_and_runs_nothing(name):
    text = to_html(ALL[name]())
    page = Page(text)
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe", "object", "embed", "a", "form"}
    assert not [key for _, found in page.tags for key in found if key.startswith("on") or key in ("src", "href")]
    assert "url(" not in text
    assert "@import" not in text


def test_a_script_in_the_data_is_shown_as_text():
    text = to_html(hostile())
    assert "<script" not in text.lower()
    assert HOSTILE in Page(text).text
    assert "&49" not in Page(text).text  # {{ 7*7 }} is not computed


def test_hostile_texts_do_not_get_into_attributes():
    values = [value for _, found in Page(to_html(hostile())).tags for value in found.values() if value]
    assert not [value for value in values if "alert" in value]


def test_the_verdict_comes_first_and_in_one_sentence():
    page = Page(to_html(different()))
    headings = [tag for tag, _ in page.tags if tag in ("h1", "h2", "svg")]
    assert headings[0] == "h1"
    assert headings.count("h1") == 1
    assert "45 rows differ up to txid 49" in page.text


def test_a_kind_that_is_rare_gets_a_tile_only_when_there_is_one():
    rare = comparison(1, 1, counts={Difference.NON_DETERMINISTIC: 7})
    assert "non-deterministic" in Page(to_html(result(Verdict.DIFFERENT, rare))).text
    assert "non-deterministic" not in Page(to_html(different())).text


def test_late_rows_alone_leave_the_verdict_equal():
    late = comparison(9, 9, counts={Difference.LATE: 3})
    assert "All 9 rows are equal" in Page(to_html(result(Verdict.EQUAL, late))).text


def test_the_page_tells_when_the_stored_rows_were_last_read_in_full():
    assert "never scanned in full" in Page(to_html(replace(different(), scanned_in_full_at=None))).text
    assert "were not read again" in Page(to_html(different())).text
    assert "were not read again" not in Page(to_html(ALL["equal"]())).text


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_have_the_contrast_that_wcag_aa_asks_for(scheme):
    style = to_html(different()).split("<style>")[1]
    colours = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", part)) for part in style.split("@media")[:2]][scheme]
    on = {"page": ("ink", "soft", "link", "good", "bad", "warn"), "card": ("ink", "soft", "good", "bad", "warn")}
    on |= {f"{tone}-wash": ("ink", "soft", tone) for tone in ("good", "bad", "warn")} | {"track": ("ink",)}
    low = {(text, ground) for ground, texts in on.items() for text in texts if _contrast(colours, text, ground) < 4.5}
    assert not low
    assert not {level for level in range(1, 6) if _contrast(colours, f"heat-{level}", "track") < 3}


def _contrast(colours: dict[str, str], one: str, other: str) -> float:
    lights = sorted((_light(colours[name]) for name in (one, other)), reverse=True)
    return (lights[0] + 0.05) / (lights[1] + 0.05)


def _light(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
