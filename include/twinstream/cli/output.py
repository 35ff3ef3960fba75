"""Where words go: data to standard output, everything else to standard error, JSON when it is asked for."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from twinstream.errors import TwinstreamError

out = Console(highlight=False, emoji=False)
err = Console(stderr=True, highlight=False, emoji=False)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text for people.")]


def emit(data: object, as_json: bool, render: Callable[[], None]) -> None:
    """Prints a command's result as JSON or for people."""
    _keep({"result": data})
    if as_json:
        print(json.dumps(data, ensure_ascii=False, default=str))
    else:
        render()


def grid(rows: Sequence[Sequence[str]], styles: Sequence[str] = ()) -> None:
    """Rows in columns as wide as they need to be: nothing is cut, whatever the width of the terminal or the pipe.

    `styles` has one style per row; none means plain.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, style in zip(rows, styles or [""] * len(rows), strict=True):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        out.print(Text(line, style), soft_wrap=True)


def say(text: str) -> None:
    """A line for people, apart from the data."""
    err.print(text, markup=False, soft_wrap=True)


def report(error: TwinstreamError, as_json: bool) -> None:
    """One clear error: the cause, what was left untouched, the next step."""
    _keep({"error": describe(error)})
    if as_json:
        print(json.dumps({"error": describe(error)}, ensure_ascii=False), file=sys.stderr)
        return
    err.print(f"{error.title}: ", style="bold red", end="", markup=False, soft_wrap=True)
    err.print(error.what, markup=False, soft_wrap=True)
    for text in (error.untouched, error.next_step):
        if text:
            err.print(f"  {text}", markup=False, soft_wrap=True)


def _keep(said: object) -> None:
    """A program that runs a command for people names a file in TWINSTREAM_RESULT to learn what came of it."""
    if file := os.environ.get("TWINSTREAM_RESULT"):
        Path(file).write_text(json.dumps(said, ensure_ascii=False, default=str), encoding="utf-8")


def describe(error: TwinstreamError) -> dict[str, Any]:
    """An error as data."""
    return {
        "kind": type(error).__name__,
        "what": error.what,
        "untouched": error.untouched,
        "next_step": error.next_step,
    }


def ago(micros: int | None, now: int) -> str:
    """How long ago, in the largest unit that fits."""
    if micros is None:
        return "–"
    seconds = max(0.0, (now - micros) / 1_000_000)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def number(value: int | float) -> str:
    """Digits in groups of three."""
    return f"{value:,.0f}".replace(",", " ")
