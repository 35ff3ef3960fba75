"""Commands by which a person decides: release, discard, reinject, replay, promote, drop."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twinstream.cli.output import AsJson, emit, number, say
from twinstream.cli.progress import DrainProgress
from twinstream.cli.session import engine
from twinstream.cli.stream import Pipeline
from twinstream.errors import SettingsError

if TYPE_CHECKING:
    from twinstream.ledger import Generation

Reason = Annotated[str, typer.Option(help="Why; it is kept in the ledger.")]
HeldTxid = Annotated[int, typer.Option(min=1, help="The txid.")]


def register(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    for command in (release, discard, reinject, replay, promote, drop):
        app.command()(command)


def release(pipeline: Pipeline, txid: HeldTxid, reason: Reason, as_json: AsJson = False) -> None:
    """Let a held txid pass the gate; the next drain commits it."""
    with engine() as opened:
        opened.release(pipeline, txid, said(reason))
    data = {"pipeline": pipeline, "txid": txid, "released": True}
    emit(data, as_json, lambda: say(f"Txid {txid} is released. Next: twinstream drain {pipeline}"))


def discard(pipeline: Pipeline, txid: HeldTxid, reason: Reason, as_json: AsJson = False) -> None:
    """Give up a txid that is held or failed: it commits empty, and its records count as discarded."""
    with engine() as opened:
        opened.discard(pipeline, txid, said(reason))
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
        done = opened.reinject(pipeline, file, said(reason), count_late)
    data = {"pipeline": pipeline, "txid": done.txid, "records": done.records}
    emit(data, as_json, lambda: say(
        f"{number(done.records)} records are planned as txid {done.txid}. Next: twinstream drain {pipeline}"
    ))  # fmt: skip


def replay(
    pipeline: Pipeline,
    build_only: Annotated[bool, typer.Option(help="Do not switch readers yet; `twinstream promote` does.")] = False,
    as_json: AsJson = False,
) -> None:
    """Build a new generation from the whole source, reconcile it with the batch, then switch readers to it."""
    from twinstream.engine import DrainRequest
    from twinstream.reconcile.replay import Replayer

    with engine() as opened, DrainProgress(pipeline, quiet=as_json) as progress:
        request = DrainRequest(context=opened.settings.context)
        done = Replayer(opened, progress).replay(pipeline, request, promote=not build_only)
    changed = None if done.against is None else sum(done.against.counts.values())
    more = {"proof": done.proof.id, "verdict": done.proof.verdict.value, "rows_changed": changed}
    _tell(pipeline, done.generation, as_json, more)


def promote(
    pipeline: Pipeline,
    force: Annotated[bool, typer.Option(help="Also if no reconciliation has found it equal to the batch.")] = False,
    as_json: AsJson = False,
) -> None:
    """Switch readers to the generation that `replay --build-only` has built; refused while it is behind."""
    with engine() as opened:
        generation = opened.promote(pipeline, unproven=force)
    _tell(pipeline, generation, as_json)


def drop(
    pipeline: Pipeline,
    generation: Annotated[int, typer.Option(min=1, help="The number of a generation that readers do not see.")],
    as_json: AsJson = False,
) -> None:
    """Delete the tables of a generation that another one has replaced."""
    with engine() as opened:
        dropped = opened.drop(pipeline, generation)
    data = {"pipeline": pipeline, "generation": dropped.number, "state": dropped.state}
    emit(data, as_json, lambda: say(f"Generation {dropped.number} of {pipeline} is dropped."))


def _tell(pipeline: str, generation: Generation, as_json: bool, more: Mapping[str, Any] | None = None) -> None:
    data = {
        "pipeline": pipeline, "generation": generation.number, "state": generation.state,
        "frontier": generation.frontier, **(more or {}),
    }  # fmt: skip
    stands = "is current" if generation.state == "current" else "is built"
    changed = (more or {}).get("rows_changed")
    against = "" if changed is None else f" {number(changed)} rows are not as they were in the one before."
    emit(data, as_json, lambda: say(
        f"Generation {generation.number} of {pipeline} {stands}, at txid {generation.frontier}.{against}"
    ))  # fmt: skip


def said(reason: str) -> str:
    """The reason, which must say something."""
    if not reason.strip():
        raise SettingsError("--reason is empty.", next_step="Say why, for whoever reads the ledger later.")
    return reason.strip()
