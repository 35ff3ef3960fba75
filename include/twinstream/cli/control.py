"""Commands by which a person decides: release, discard, reinject, replay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twinstream.cli.output import AsJson, emit, number, say
from twinstream.cli.progress import DrainProgress
from twinstream.cli.session import engine
from twinstream.cli.stream import Pipeline
from twinstream.errors import SettingsError

Reason = Annotated[str, typer.Option(help="Why; it is kept in the ledger.")]
HeldTxid = Annotated[int, typer.Option(min=1, help="The txid.")]


def register(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    for command in (release, discard, reinject, replay):
        app.command()(command)


def release(pipeline: Pipeline, txid: HeldTxid, reason: Reason, as_json: AsJson = False) -> None:
    """Let a held txid pass the gate; the next drain commits it."""
    with engine() as opened:
        opened.release(pipeline, txid, _said(reason))
    data = {"pipeline": pipeline, "txid": txid, "released": True}
    emit(data, as_json, lambda: say(f"Txid {txid} is released. Next: twinstream drain {pipeline}"))


def discard(pipeline: Pipeline, txid: HeldTxid, reason: Reason, as_json: AsJson = False) -> None:
    """Give up a txid that is held or failed: it commits empty, and its records count as discarded."""
    with engine() as opened:
        opened.discard(pipeline, txid, _said(reason))
    data = {"pipeline": pipeline, "txid": txid, "discarded": True}
    emit(data, as_json, lambda: say(f"Txid {txid} will commit empty. Next: twinstream drain {pipeline}"))


def reinject(
    pipeline: Pipeline,
    file: Annotated[Path, typer.Argument(help="Mended records, one a line, as `twinstream dead --export` wrote them.")],
    reason: Reason = "mended",
    count_late: Annotated[
        bool, typer.Option(help="Count them even where the watermark has passed their windows.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Bring mended dead letters or late records back as a new txid."""
    with engine() as opened:
        done = opened.reinject(pipeline, file, _said(reason), count_late)
    data = {"pipeline": pipeline, "txid": done.txid, "records": done.records}
    emit(data, as_json, lambda: say(
        f"{number(done.records)} records are planned as txid {done.txid}. Next: twinstream drain {pipeline}"
    ))  # fmt: skip


def replay(pipeline: Pipeline, as_json: AsJson = False) -> None:
    """Build a new generation under the current definition from the whole source, then switch readers to it."""
    from twinstream.engine import DrainRequest

    with engine() as opened, DrainProgress(pipeline, quiet=as_json) as progress:
        generation = opened.replay(pipeline, DrainRequest(), progress)
    data = {"pipeline": pipeline, "generation": generation.number, "frontier": generation.frontier}
    emit(data, as_json, lambda: say(
        f"Generation {generation.number} of {pipeline} is current, at txid {generation.frontier}."
    ))  # fmt: skip


def _said(reason: str) -> str:
    if not reason.strip():
        raise SettingsError("--reason is empty.", next_step="Say why, for whoever reads the ledger later.")
    return reason.strip()
