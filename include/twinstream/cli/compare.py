"""Commands that compare without a frontier: two generations of a pipeline, two tables, its modes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twinstream.cli import compare_modes
from twinstream.cli.output import AsJson, emit, out
from twinstream.cli.session import engine
from twinstream.cli.stream import Pipeline
from twinstream.errors import BadUsage, Refused
from twinstream.reconcile.result import Comparison

DIFFERENT = 1


def register(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command(name="compare-generations")(compare_generations)
    app.command(name="compare-tables")(compare_tables)
    compare_modes.register(app)


def compare_generations(
    pipeline: Pipeline,
    other: Annotated[int | None, typer.Option("--with", min=1, help="Its number (default: the one before).")] = None,
    as_json: AsJson = False,
) -> int:
    """Compare the newest generation of a pipeline with an earlier one; exit code 1 if they differ."""
    from twinstream.reconcile.generations import compare_generations as look

    with engine() as opened:
        opened.definition(pipeline)
        known = {one.number: one for one in opened.ledger.generations.of(pipeline) if one.state != "dropped"}
        if len(known) < 2 or (other is not None and other not in known):
            raise Refused(
                f"{pipeline} has no two generations to compare: there are {', '.join(map(str, known)) or 'none'}.",
                next_step=f"`twinstream replay {pipeline} --build-only` builds another one.",
            )
        newest, before = sorted(known)[-1], sorted(known)[-2]
        found = look(opened, pipeline, known[newest], known[before if other is None else other])
    return _told(pipeline, found, as_json)


def compare_tables(
    left: Annotated[Path, typer.Argument(help="A Delta table or a folder of Parquet files.")],
    right: Annotated[Path, typer.Argument(help="What it should be like.")],
    key: Annotated[list[str], typer.Option(help="A column that identifies a row; may be given several times.")],
    exclude: Annotated[list[str] | None, typer.Option(help="A column that is not compared.")] = None,
    tolerance: Annotated[str, typer.Option(help="How far numbers may be apart.")] = "0",
    as_json: AsJson = False,
) -> int:
    """Compare two tables of the same shape, row by row; exit code 1 if they differ."""
    from twinstream.batch.table import read_any
    from twinstream.reconcile.compare import compare
    from twinstream.reconcile.options import Options

    for path in (left, right):
        if not path.is_dir():
            raise BadUsage(f"There is no table at {path}.", next_step="Give the folder of a Delta or Parquet table.")
    with engine() as opened:
        tables = [read_any(opened.spark(), path) for path in (left, right)]
        options = Options(tolerance=tolerance, exclude=tuple(exclude or ()), names=("left", "right"))
        found = compare(tables[0], tables[1], key, options)
    return _told(f"{left} and {right}", found, as_json)


def _told(what: str, found: Comparison, as_json: bool) -> int:
    from twinstream.report.as_json import comparison_to_dict
    from twinstream.report.text import render_comparison

    emit({"compared": what, **comparison_to_dict(found)}, as_json, lambda: out.print(render_comparison(what, found)))
    return 0 if found.equal else DIFFERENT
