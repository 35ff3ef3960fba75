"""Commands of the batch layer: recompute."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from twinstream.cli.output import AsJson, emit, number, say
from twinstream.cli.progress import Notes
from twinstream.cli.session import engine
from twinstream.cli.stream import Pipeline
from twinstream.errors import SettingsError

if TYPE_CHECKING:
    from twinstream.batch.scope import Scope

Frontier = Annotated[int | None, typer.Option(min=1, help="As of this txid (default: the newest committed one).")]
Start = Annotated[str | None, typer.Option("--from", help="Only event times from this moment on (ISO).")]
End = Annotated[str | None, typer.Option("--to", help="Only event times before this moment (ISO).")]
Keys = Annotated[list[str] | None, typer.Option("--key", help="Only rows with this key, as column=value.")]


def register(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command()(recompute)


def recompute(
    pipeline: Pipeline,
    frontier: Frontier = None,
    start: Start = None,
    end: End = None,
    key: Keys = None,
    as_json: AsJson = False,
) -> None:
    """Compute the result anew from the source, by the plain query over all records."""
    from twinstream.batch.layer import BatchLayer

    began = time.monotonic()
    with engine() as opened:
        run = BatchLayer(opened).recompute(
            pipeline, frontier, scope_of(start, end, key), progress=Notes(quiet=as_json),
            context=opened.settings.context,
        )  # fmt: skip
        table = opened.settings.home / (run.folder or "") / "table"
    counted = run.result or {}
    data = {
        "pipeline": pipeline, "run": run.id, "frontier": run.frontier, "table": str(table),
        "records": counted["records"], "late": counted["late_records"],
        "seconds": round(time.monotonic() - began, 2),
    }  # fmt: skip
    emit(data, as_json, lambda: say(
        f"Recomputed {pipeline} as of txid {run.frontier} from {number(counted['records'])} records "
        f"in {data['seconds']} s: {table}"
    ))  # fmt: skip


def scope_of(start: str | None, end: str | None, key: list[str] | None) -> Scope:
    """The scope that the options ask for."""
    from twinstream.batch.scope import Scope

    return Scope(_micros(start, "--from"), _micros(end, "--to"), _keys(key or []))


def _keys(given: list[str]) -> dict[str, str]:
    found = {}
    for item in given:
        name, separator, value = item.partition("=")
        if not separator:
            raise SettingsError(f"--key {item!r} is not column=value.", next_step="Write for example --key page=/home.")
        found[name] = value
    return found


def _micros(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise SettingsError(
            f"{option} {text!r} is not a moment in time.", next_step="Write 2026-01-31T12:00:00Z."
        ) from None
    moment = found if found.tzinfo else found.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1_000_000)
