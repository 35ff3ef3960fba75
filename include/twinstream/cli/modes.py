"""Commands about who runs a pipeline: stop, and hand over between micro-batches and a continuous query."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from twinstream.cli import stream
from twinstream.cli.control import Reason, said
from twinstream.cli.output import AsJson, emit, say
from twinstream.cli.session import engine
from twinstream.cli.stream import Pipeline

Mode = Literal["microbatch", "continuous"]


def register(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    for command in (stop, handover):
        app.command()(command)


def stop(pipeline: Pipeline, reason: Reason, as_json: AsJson = False) -> None:
    """Ask whoever runs a pipeline, or stands by, to end at the next frontier."""
    with engine() as opened:
        asked = opened.stop(pipeline, said(reason))
    data = {"pipeline": pipeline, "asked": asked}
    emit(data, as_json, lambda: say(
        f"{pipeline} was asked to stop." if asked else f"Nobody runs {pipeline}; whoever stands by ends."
    ))  # fmt: skip


def handover(
    pipeline: Pipeline,
    to: Annotated[Mode, typer.Option(help="Who goes on: micro-batches, or a continuous query in this process.")],
    reason: Reason = "handover",
    every: Annotated[str, typer.Option(help="How often the query looks for new records.")] = "5 seconds",
    seconds: Annotated[float | None, typer.Option(min=0, help="End the query after so many seconds.")] = None,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait until the other one has ended.")] = 600.0,
    as_json: AsJson = False,
) -> None:
    """End whoever runs a pipeline at a frontier and go on from there in the other mode: no gap, no repeat."""
    with engine() as opened:
        opened.definition(pipeline)
        if opened.ledger.generations.current(pipeline) is not None:
            opened.stop(pipeline, f"{said(reason)}: handed over to {to}")
            opened.wait_until_free(pipeline, wait)
    if to == "continuous":
        stream.continuous(pipeline, every=every, seconds=seconds, wait=wait, as_json=as_json)
    else:
        stream.drain(pipeline, wait=wait, as_json=as_json)
