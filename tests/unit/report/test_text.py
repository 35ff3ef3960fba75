"""The terminal shows data as data: no markup, no control characters, nothing lost at the edge."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from tests.unit.report.results import SAMPLES, different, hostile
from twinstream.report.text import render, to_text


def test_control_characters_of_the_data_do_not_reach_the_terminal():
    text = to_text(replace(different(), pipeline="a\x1b[31mb\x07\u202ec"))
    assert not [sign for sign in text if not sign.isprintable() and sign != "\n"]


def test_square_brackets_are_text():
    shown = io.StringIO()
    Console(file=shown, width=100).print(render(replace(different(), causes=("[red]x[/red] [/nothing]",))))
    assert "[red]x[/red] [/nothing]" in shown.getvalue()


def test_a_narrow_terminal_wraps_and_cuts_nothing():
    text = to_text(hostile(), width=40)
    assert max(map(len, text.splitlines())) <= 40
    assert "…" not in text


def test_a_missing_row_shows_what_should_be_there_and_a_wrong_one_shows_both():
    text = to_text(different(), width=200)
    assert "views 12; spend 48.90 · txid 17" in text
    assert "views 41, should be 40 (+1); spend 100.00, should be null" in text


def test_more_samples_than_fit_are_counted():
    many = replace(different().comparison, samples=SAMPLES * 5)
    assert "10 of 45 rows shown" in to_text(replace(different(), comparison=many))
