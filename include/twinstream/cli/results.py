"""Commands about results: read, dead, late, fold, clean."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from twinstream.cli.output import AsJson, emit, say
from twinstream.cli.session import engine
from twinstream.cli.stream import Pipeline
from twinstream.errors import Refused, SettingsError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Txid = Annotated[int | None, typer.Option(min=1, help="Only this txid.")]
Export = Annotated[
    Path | None, typer.Option(help="Write the records themselves to this file, one a line, to mend them.")
]


def register(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    for command in (read, dead, late, fold, clean):
        app.command()(command)


def read(
    pipeline: Pipeline,
    as_of: Annotated[int | None, typer.Option(min=0, help="The result as of this txid.")] = None,
    layer: Annotated[
        str, typer.Option(help="stream, batch, or serving (the batch and what was streamed after it).")
    ] = ("stream"),
    as_recorded: Annotated[bool, typer.Option(help="What was served, without any repair.")] = False,
    closed_only: Annotated[bool, typer.Option(help="Only windows that the watermark has passed.")] = False,
    format: Annotated[str, typer.Option(help="csv or json (one object a line).")] = "csv",
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many rows.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print the result: keys, window, measures. Only data goes to standard output."""
    if format not in ("csv", "json"):
        raise SettingsError(f"--format {format!r} is not known.", next_step="Use csv or json.")
    if layer not in ("stream", "batch", "serving"):
        raise SettingsError(f"--layer {layer!r} is not known.", next_step="Use stream, batch or serving.")
    if layer != "stream" and (closed_only or as_recorded):
        raise SettingsError(
            "--closed-only and --as-recorded are for the stream.", next_step=f"Leave them out with --layer {layer}."
        )
    with engine() as opened:
        if layer == "stream":
            rows = opened.read(pipeline, as_of=as_of, closed_only=closed_only, as_recorded=as_recorded)
        else:
            from twinstream.batch.layer import BatchLayer

            read_layer = BatchLayer(opened).read_batch if layer == "batch" else BatchLayer(opened).read_serving
            rows = read_layer(pipeline, as_of)
        print_rows(rows, "json" if as_json else format, limit)


def dead(pipeline: Pipeline, txid: Txid = None, export: Export = None, as_json: AsJson = False) -> None:
    """Print the dead letters: records that could not be used, with the reason."""
    _aside(pipeline, "dead", txid, export, as_json)


def late(pipeline: Pipeline, txid: Txid = None, export: Export = None, as_json: AsJson = False) -> None:
    """Print the late records that were put aside (late="side")."""
    _aside(pipeline, "late", txid, export, as_json)


def fold(pipeline: Pipeline, as_json: AsJson = False) -> None:
    """Fold the result into a new base, and refresh the published table."""
    with engine() as opened:
        done = opened.fold(pipeline)
        published = opened.published(opened.definition(pipeline))
    data = {"pipeline": pipeline, "base": done.number, "frontier": done.frontier, "published": str(published)}
    text = f"Base {done.number}" if done.number else "Nothing new to fold; the newest base"
    emit(data, as_json, lambda: say(f"{text} is at txid {done.frontier}, published at {published}."))


def clean(
    pipeline: Pipeline,
    retain: Annotated[
        float | None, typer.Option(min=0, help="Keep so many hours (default: the sink's retain).")
    ] = None,
    grace: Annotated[
        float | None, typer.Option(min=0, help="Hours before a file that is out of use is deleted.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Remove what nobody needs any more: superseded partials, bases and batch results, leftovers of failed attempts."""
    from twinstream.batch.layer import BatchLayer

    kept = None if retain is None else retain * 3600
    with engine() as opened:
        done = opened.clean(pipeline, kept, None if grace is None else grace * 3600)
        batches = BatchLayer(opened).clean(pipeline, kept)
    data = {
        "pipeline": pipeline, "kept_from": done.kept_from, "removed": done.removed, "deleted": done.deleted,
        "leftovers": done.leftovers, "batches": batches,
    }  # fmt: skip
    emit(data, as_json, lambda: say(
        f"Took {done.removed} files out of the table, deleted {done.deleted}, the leftovers of {done.leftovers} "
        f"attempts and {batches} batch results. Results are kept from txid {done.kept_from} on."
    ))  # fmt: skip


def print_rows(rows: DataFrame, format: str, limit: int | None) -> None:
    """Prints rows in a fixed order; values are formatted by Spark, so that no local time zone can touch them."""
    from pyspark.sql import functions as F

    kinds = dict(rows.dtypes)
    ordered = rows.orderBy(*(F.col(f"`{name}`") for name, kind in rows.dtypes if "map<" not in kind))
    ordered = ordered if limit is None else ordered.limit(limit)
    if format == "json":
        shown = [
            (_iso(name) if kinds[name] == "timestamp" else F.col(f"`{name}`")).alias(name) for name in rows.columns
        ]
        whole = F.to_json(F.struct(*shown), {"ignoreNullFields": "false"})
        for (line,) in ordered.select(whole).toLocalIterator():
            print(line)
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(rows.columns)
    texts = ordered.select(*(_text(name, kinds[name]).alias(name) for name in rows.columns))
    for row in texts.toLocalIterator():
        writer.writerow(["" if value is None else value for value in row])


def _aside(pipeline: str, kind: str, txid: int | None, export: Path | None, as_json: bool) -> None:
    with engine() as opened:
        rows = opened.read_aside(pipeline, kind, txid)
        if export is None:
            print_rows(rows, "json" if as_json else "csv", None)
            return
        if export.exists():
            raise Refused(f"{export} exists already.", next_step="Name another file, or remove it first.")
        count = 0
        with export.open("w", encoding="utf-8") as file:
            for row in rows.toLocalIterator():
                for _ in range(row["occurrences"]):
                    file.write(row["record"] + "\n")
                    count += 1
    data = {"pipeline": pipeline, "kind": kind, "file": str(export), "records": count}
    emit(data, as_json, lambda: say(
        f"Wrote {count} records to {export}. Mend them, then: twinstream reinject {pipeline} {export}"
    ))  # fmt: skip


def _iso(name: str) -> Column:
    from pyspark.sql import functions as F

    column = F.col(f"`{name}`")
    fraction = F.pmod(F.unix_micros(column), F.lit(1_000_000))
    tail = F.when(fraction == 0, F.lit("")).otherwise(F.concat(F.lit("."), F.lpad(fraction.cast("string"), 6, "0")))
    return F.concat(F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss"), tail, F.lit("Z"))


def _text(name: str, kind: str) -> Column:
    from pyspark.sql import functions as F

    if kind == "timestamp":
        return _iso(name)
    if kind.startswith(("array", "struct", "map")):
        return F.to_json(f"`{name}`")
    return F.col(f"`{name}`").cast("string")
