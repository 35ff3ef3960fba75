"""The command that compares the modes of a pipeline."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from twinstream.cli.output import AsJson, emit, grid, say
from twinstream.cli.session import engine
from twinstream.cli.stream import Pipeline
from twinstream.durations import parse_duration
from twinstream.modes.result import Compared, Measured

DIFFERENT = 1


def register(app: typer.Typer) -> None:
    """Adds the command of this file."""
    app.command(name="compare-modes")(compare_modes)


def compare_modes(
    pipeline: Pipeline,
    records: Annotated[int, typer.Option(min=1, help="How many of the newest records to take.")] = 50_000,
    seconds: Annotated[
        float, typer.Option(min=1, help="How long they take to come once more, and how often a drain begins.")
    ] = 20.0,
    every: Annotated[str, typer.Option(help="How often the continuous query looks for new records.")] = "1 second",
    kill: Annotated[bool, typer.Option(help="Also kill a runner of each mode and time its recovery.")] = True,
    as_json: AsJson = False,
) -> int:
    """Stream the newest records once more in every mode, and say which mode to use; exit code 1 if results differ.

    The pipeline is not touched: its newest records are sent to topics of their own, and each mode has a home and a
    ledger of its own; all is deleted at the end. Every mode first catches up with all records (throughput; the digests
    of these results are compared), then takes them as they come over --seconds, with the distances that they had
    (latency from the record's timestamp until its txid is committed, CPU seconds of this process and its Spark). The
    drain begins when they have come, as a schedule of that length would; a longer one adds to its latency. Then a
    runner is killed after its first commit (time from the kill to the next commit, by a new process on this machine).
    Late records count like others, and gates are not asked. Of files only catching up and the kill are measured.
    """
    from twinstream.modes.compare import CompareRequest
    from twinstream.modes.compare import compare_modes as look
    from twinstream.report.modes import to_html
    from twinstream.report.paths import report_path

    parse_duration(every, "--every")
    with engine() as opened:
        request = CompareRequest(records, seconds, every, kill)
        found = look(opened, pipeline, request, (lambda _: None) if as_json else say)
        page = report_path(opened.settings.home, pipeline, "modes")
    page.parent.mkdir(parents=True, exist_ok=True)
    page.with_suffix(".json").write_text(json.dumps(found.to_dict(), indent=2), encoding="utf-8")
    page.write_text(to_html(found), encoding="utf-8")

    def tell() -> None:
        _show(found)
        say(f"The comparison as a page: {page}")

    emit({**found.to_dict(), "page": str(page)}, as_json, tell)
    return 0 if found.same else DIFFERENT


def _show(found: Compared) -> None:
    from twinstream.cli.output import out

    head = ("mode", "p50", "p99", "records/s", "CPU s / million", "recovery", "result")
    grid([head, *(_row(one) for one in found.modes)], ["bold", *("" for _ in found.modes)])
    out.print(found.advice, markup=False, soft_wrap=True)


def _row(one: Measured) -> tuple[str, ...]:
    if one.why_not:
        return (one.mode, *("n/a" for _ in range(5)), one.why_not)
    return (
        one.mode, _figure(one.p50, ".2f", " s"), _figure(one.p99, ".2f", " s"),
        _figure(one.records_per_second, ",.0f"), _figure(one.cpu_per_million, ",.0f"),
        _figure(one.recovery, ".1f", " s"), (one.digest or "")[:12],
    )  # fmt: skip


def _figure(value: float | None, form: str, unit: str = "") -> str:
    return "n/a" if value is None else f"{value:{form}}{unit}".replace(",", " ")
