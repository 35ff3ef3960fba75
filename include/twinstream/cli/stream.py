"""Commands that move data: generate, drain, continuous, status."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from twinstream.cli.output import AsJson, ago, emit, number, out, say
from twinstream.cli.progress import DrainProgress
from twinstream.cli.session import engine
from twinstream.durations import parse_duration
from twinstream.errors import SettingsError
from twinstream.watermark import Watermark

Pipeline = Annotated[str, typer.Argument(metavar="PIPELINE", help="Name of the pipeline.")]


def register(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(generate)
    app.command()(drain)
    app.command()(continuous)
    app.command()(status)


def generate(
    pipeline: Pipeline,
    events: Annotated[int, typer.Option(min=1, help="How many events to write.")] = 100_000,
    seed: Annotated[int, typer.Option(help="The same seed and start give the same bytes.")] = 1,
    duplicates: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of repeated records.")] = 0.0,
    late: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of events that come late.")] = 0.0,
    poison: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of records that are broken.")] = 0.0,
    events_per_file: Annotated[int, typer.Option(min=1, help="Events in each file.")] = 10_000,
    start: Annotated[
        str | None, typer.Option(help="Event time of the first event (ISO; default: so that it ends now).")
    ] = None,
    rate: Annotated[float, typer.Option(min=0.001, help="Events per second of event time.")] = 100.0,
    nested: Annotated[bool, typer.Option(help="Files in one folder per date.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write realistic, seeded events into the pipeline's source: a folder or a topic."""
    from twinstream.generator import generate as write

    with engine() as opened:
        definition = opened.definition(pipeline)
        source = definition.pipeline.source
        target = source.target(opened.places(definition))
        began = time.monotonic()
        made = write(
            source.columns, target, record_id=definition.pipeline.record_id, event_time=definition.pipeline.event_time,
            events=events, seed=seed, duplicates=duplicates, late=late, poison=poison, events_per_file=events_per_file,
            start=_moment(start), rate=rate, lateness=_lateness(definition.pipeline.watermark), nested=nested,
            format=source.brought_back.format,  # type: ignore[arg-type]
        )  # fmt: skip
        data = {
            "pipeline": pipeline, "to": str(target), "files": len(made.files), "events": made.events,
            "duplicates": made.duplicates, "late": made.late, "poison": made.poison, "bytes": made.bytes,
            "seconds": round(time.monotonic() - began, 2),
        }  # fmt: skip
        emit(data, as_json, lambda: say(
            f"Wrote {number(made.events)} events{f' in {len(made.files)} files' if made.files else ''} to {target} "
            f"({made.duplicates} repeated, {made.late} late, {made.poison} broken)."
        ))  # fmt: skip


def drain(
    pipeline: Pipeline,
    max_batches: Annotated[int | None, typer.Option(min=1, help="Stop after so many txids.")] = None,
    batch_records: Annotated[int | None, typer.Option(min=1, help="Records per txid for what is planned now.")] = None,
    group: Annotated[
        int | None, typer.Option(min=0, help="Txids per Spark job (0: no limit; default: by the rate controller).")
    ] = None,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait for another runner's lease.")] = 90.0,
    as_json: AsJson = False,
) -> None:
    """Plan what is new and commit it, txid by txid, exactly once."""
    from twinstream.engine import DrainRequest
    from twinstream.runtime.status import moment

    began = time.monotonic()
    with engine() as opened, DrainProgress(pipeline, quiet=as_json) as progress:
        at_once = None if group is None else group or 1_000_000_000
        request = DrainRequest(max_batches, batch_records, at_once, wait, opened.settings.context)
        drained = opened.drain(pipeline, request, progress)
        generation = opened.ledger.generations.current(pipeline)
        assert generation is not None
        seconds = time.monotonic() - began
    data = {
        "pipeline": pipeline, "generation": generation.number, "txids": drained.txids, "records": drained.records,
        "late": drained.late, "dead": drained.dead, "duplicate": drained.duplicate, "frontier": generation.frontier,
        "watermark": moment(generation.watermark), "epoch": drained.epoch, "seconds": round(seconds, 2),
    }  # fmt: skip
    if drained.txids:
        text = (
            f"Committed {drained.txids} txids, {number(drained.records)} records in {seconds:.1f} s "
            f"({drained.late} late, {drained.dead} dead letters, {drained.duplicate} duplicates). "
            f"Frontier {generation.frontier}."
        )
    else:
        text = f"Nothing to do: {pipeline} is at its frontier, txid {generation.frontier}."
    emit(data, as_json, lambda: say(text))


def continuous(
    pipeline: Pipeline,
    every: Annotated[str, typer.Option(help="How often the query looks for new records.")] = "5 seconds",
    available_now: Annotated[bool, typer.Option(help="Take what is there now, and end.")] = False,
    real_time: Annotated[
        str | None,
        typer.Option(help="Serve topic to topic in milliseconds, at-least-once; note so often how far it is."),
    ] = None,
    seconds: Annotated[float | None, typer.Option(min=0, help="End after so many seconds.")] = None,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to stand by while another runner is at work.")] = 90.0,
    standby: Annotated[bool, typer.Option("--standby", help="Stand by for as long as another runner lives.")] = False,
    as_json: AsJson = False,
) -> None:
    """Stream a topic until Ctrl-C: a long-lived query, the same ledger, the same exactly-once commits."""
    from twinstream.runtime.continuous import ContinuousRequest
    from twinstream.runtime.realtime import RealTimeRequest, require_served
    from twinstream.runtime.supervision import supervised

    parse_duration(every, "--every")
    if real_time is not None:
        parse_duration(real_time, "--real-time")
        if available_now or standby:
            raise SettingsError(
                "--real-time excludes --available-now and --standby.", next_step="Leave one of them out."
            )
    with (
        engine() as opened,
        supervised(lambda: opened.ledger, opened.settings.context) as watched,
        DrainProgress(pipeline, quiet=as_json) as progress,
    ):
        context = opened.settings.context
        definition = opened.definition(pipeline)
        if real_time is not None:
            require_served(definition.pipeline)
        opened.spark()  # before the signals are ours: it would take them
        with asked_to_stop() as stop:
            if watched:
                watched.ends_by(stop)
            if real_time is None:
                patience = math.inf if standby else wait
                request = ContinuousRequest(None if available_now else every, seconds, patience, context)
                drained = opened.continuous(pipeline, request, progress, stop)
            else:
                drained = opened.real_time(pipeline, RealTimeRequest(real_time, seconds, wait, context), progress, stop)
        generation = opened.ledger.generations.current(pipeline)
        assert generation is not None
        data = {
            "pipeline": pipeline, "generation": generation.number, "txids": drained.txids, "records": drained.records,
            "late": drained.late, "dead": drained.dead, "duplicate": drained.duplicate, "frontier": generation.frontier,
            "epoch": drained.epoch, "ended": drained.ended,
        }  # fmt: skip
        if watched:
            watched.finish(data)
    emit(data, as_json, lambda: say(
        f"Stopped after {drained.txids} txids with {number(drained.records)} records. Frontier {generation.frontier}."
    ))  # fmt: skip


@contextmanager
def asked_to_stop() -> Iterator[threading.Event]:
    """Set by Ctrl-C or a request to terminate; the second Ctrl-C does not wait for the batch that is under way."""
    stop = threading.Event()

    def ask(number: int, _frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def status(pipeline: Pipeline, as_json: AsJson = False) -> None:
    """Show where a pipeline stands: frontier, lag, watermark, accounting, attempts."""
    from twinstream.runtime.status import status_of

    with engine() as opened:
        definition = opened.definition(pipeline)
        data = status_of(opened.ledger, definition)
        if (produced := opened.produced(definition)) is not None:
            data["produced"] = produced
        emit(data, as_json, lambda: _show_status(data))


def _show_status(data: dict[str, Any]) -> None:
    from rich.table import Table

    out.print(f"[bold]{data['pipeline']}[/bold]  {data['guarantee']}")
    if data["generation"] is None:
        out.print("Not run yet.", markup=False)
        return
    now = data["now_micros"]
    rows = [
        ("generation", f"{data['generation']} (definition {data['definition'][:8]})"),
        ("frontier", f"txid {data['frontier']} of {data['planned']} planned"),
        ("backlog", f"{data['backlog']['txids']} txids, {number(data['backlog']['records'])} records"),
        ("lag", ago(data["backlog"]["oldest_micros"], now) if data["backlog"]["txids"] else "none"),
        ("watermark", data["watermark"] or "–"),
        ("runner", data["runner"] or "none"),
        ("continuous", _streamed(data["continuous"], now)),
        ("accounting", ", ".join(f"{name} {number(n)}" for name, n in data["accounting"].items())),
    ]
    if "produced" in data:
        rows.insert(2, ("produced", f"txid {data['produced']}"))
    for name, value in rows:
        out.print(f"  {name:<11} {value}", markup=False, soft_wrap=True)
    for entry in data["open"]:
        out.print(f"  txid {entry['txid']}: {entry['state']} {entry['reason'] or ''}", markup=False, soft_wrap=True)
    table = Table("attempt", "txids", "no.", "epoch", "outcome", "started", "error", box=None, pad_edge=False)
    for attempt in data["attempts"]:
        span = f"{attempt['first_txid']}–{attempt['last_txid']}"
        table.add_row(
            str(attempt["id"]), span, str(attempt["number"]), str(attempt["epoch"]), attempt["outcome"],
            ago(attempt["started_at"], now) + " ago", attempt["error"] or "",
        )  # fmt: skip
    if data["attempts"]:
        out.print(table)


def _streamed(found: dict[str, Any] | None, now: int) -> str:
    """How a continuous run does; nothing is known of its pace before its first batch."""
    if found is None or not found["live"]:
        return "not running"
    seen = f"run {found['run']}, seen {ago(found['seen_micros'], now)} ago"
    if "behind" not in found:
        return f"{seen}, starting"
    return (
        f"{seen}, {number(found['records_per_second'])} records/s, {number(found['behind'])} offsets wait in the topics"
    )


def _lateness(watermark: Watermark | None) -> timedelta:
    """How much older late events are: enough for the watermark to have passed them."""
    return timedelta(microseconds=3 * watermark.delay_micros) if watermark else timedelta(minutes=30)


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise SettingsError(
            f"--start {text!r} is not a moment in time.", next_step="Write 2026-01-31T12:00:00Z."
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
