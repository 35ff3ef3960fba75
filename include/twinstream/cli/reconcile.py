"""Commands that answer 'are these numbers right?': reconcile, scrub, repair, certificate, report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from twinstream.cli.batch import End, Frontier, Keys, Start, scope_of
from twinstream.cli.output import AsJson, emit, number, out, say
from twinstream.cli.progress import Notes
from twinstream.cli.session import engine
from twinstream.cli.stream import Pipeline
from twinstream.errors import Refused, ReportError
from twinstream.reconcile.result import Reconciliation, Verdict

DIFFERENT = 1


def register(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    for command in (reconcile, scrub, repair, certificate, report):
        app.command()(command)


def reconcile(
    pipeline: Pipeline,
    frontier: Frontier = None,
    start: Start = None,
    end: End = None,
    key: Keys = None,
    fresh: Annotated[bool, typer.Option(help="Recompute even if there is a batch result as of this txid.")] = False,
    quick: Annotated[
        bool, typer.Option(help="Of the stream's side read only what is new since the last reconciliation.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Compare what was streamed with what the source says, row by row; exit code 1 if they differ."""
    from twinstream.reconcile.reconcile import Reconciler

    with engine() as opened:
        found = Reconciler(opened, Notes(quiet=as_json)).reconcile(
            pipeline, frontier, scope_of(start, end, key), fresh=fresh, quick=quick, context=opened.settings.context
        )
        _show(found, opened.settings.home, as_json)
    return DIFFERENT if found.verdict is Verdict.DIFFERENT else 0


def scrub(pipeline: Pipeline, as_json: AsJson = False) -> int:
    """Compare the stored rows with the digests that the ledger logged; finds what was altered behind our back."""
    from twinstream.reconcile.scrub import scrub as look

    with engine() as opened:
        found = look(opened, pipeline)
    data = {
        "pipeline": pipeline, "frontier": found.frontier, "from": found.first, "rows": found.rows,
        "damaged": [
            {"txid": d.txid, "rows_logged": d.logged.count, "rows_found": d.found.count} for d in found.damaged
        ],
        "mended": list(found.mended),
    }  # fmt: skip

    def tell() -> None:
        span = f"txids {found.first} to {found.frontier}, {number(found.rows)} rows"
        if found.mended:
            say(f"{len(found.mended)} txids are damaged, but a repair took their place: nobody reads them any more.")
        if not found.damaged:
            say(f"All {'other ' if found.mended else ''}stored rows are as they were committed ({span}).")
            return
        say(f"{len(found.damaged)} txids are not as they were committed ({span}):")
        for one in found.damaged:
            say(f"  txid {one.txid}: {one.logged.count} rows were committed, {one.found.count} are there"
                + ("" if one.logged.count != one.found.count else ", with other values"))  # fmt: skip
        say(f"`twinstream reconcile {pipeline}` shows which rows; `twinstream repair {pipeline}` mends them.")

    emit(data, as_json, tell)
    return DIFFERENT if found.damaged else 0


def repair(
    pipeline: Pipeline,
    frontier: Frontier = None,
    dry_run: Annotated[bool, typer.Option(help="Only show what would change.")] = False,
    force: Annotated[bool, typer.Option(help="Also where the cause is one that a repair would hide.")] = False,
    undo: Annotated[bool, typer.Option(help="Bring back what was served before the last repair.")] = False,
    as_json: AsJson = False,
) -> int:
    """Make the batch result the newest base, then prove that stream and batch are equal."""
    from twinstream.reconcile.mending import Repairer

    with engine() as opened:
        repairer = Repairer(opened, Notes(quiet=as_json))
        if undo:
            base = repairer.undo(pipeline, context=opened.settings.context)
            data = {"pipeline": pipeline, "base": base.number, "frontier": base.frontier}
            emit(data, as_json, lambda: say(f"Undone: base {base.number} is what was served before the repair."))
            return 0
        done = repairer.repair(pipeline, frontier, dry_run=dry_run, force=force, context=opened.settings.context)
        if dry_run:
            _show(done.before, opened.settings.home, as_json)
            return 0
    data = {
        "pipeline": pipeline, "frontier": done.before.frontier, "base": done.base, "before": done.before.id,
        "after": done.after.id if done.after else None,
        "verdict": (done.after or done.before).verdict.value,
    }  # fmt: skip
    if done.base is None:
        text = f"Nothing to repair: {pipeline} is equal as of txid {done.before.frontier}."
    else:
        text = (
            f"Repaired {pipeline} as of txid {done.before.frontier} with base {done.base}: stream and batch are equal."
        )
    emit(data, as_json, lambda: say(text))
    return 0


def certificate(
    pipeline: Pipeline,
    frontier: Frontier = None,
    verify: Annotated[bool, typer.Option(help="Recompute what can be recomputed, and say what could not.")] = False,
    as_json: AsJson = False,
) -> int:
    """Print the certificate of a reconciled frontier, or check it again."""
    from twinstream.reconcile.certificate import load

    with engine() as opened:
        generation = opened.any_generation(opened.definition(pipeline))
        content = load(opened.settings.home, pipeline, generation.name, frontier)
        if not verify:
            print(json.dumps(content, indent=2, ensure_ascii=False))
            return 0
        from twinstream.reconcile.verify import verify as check

        checks = check(opened, content)
    data = {"pipeline": pipeline, "frontier": content["frontier"], "verdict": content["verdict"],
            "checks": [{"says": c.says, "holds": c.holds, "detail": c.detail} for c in checks]}  # fmt: skip

    def tell() -> None:
        for one in checks:
            mark = {True: "holds      ", False: "does not   ", None: "cannot tell"}[one.holds]
            out.print(f"{mark}  {one.says}{f' ({one.detail})' if one.detail else ''}", markup=False, soft_wrap=True)

    emit(data, as_json, tell)
    return DIFFERENT if any(one.holds is False for one in checks) else 0


def report(
    pipeline: Pipeline,
    id: Annotated[str | None, typer.Option(help="Which reconciliation (default: the newest).")] = None,
    html: Annotated[Path | None, typer.Option(help="Write the report as a web page to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the report of a reconciliation."""
    from twinstream.report.as_json import from_json
    from twinstream.report.html import to_html
    from twinstream.report.paths import report_path

    with engine() as opened:
        opened.definition(pipeline)
        home = opened.settings.home
    chosen = id or _newest_report(home, pipeline)
    source = report_path(home, pipeline, chosen, "json")
    if not source.is_file():
        raise ReportError(
            f"There is no report {chosen} of {pipeline}.", next_step=f"Run `twinstream reconcile {pipeline}`."
        )
    found = from_json(source.read_text(encoding="utf-8"))
    if html is None:
        _show(found, home, as_json)
        return
    if html.exists():
        raise Refused(f"{html} exists already.", next_step="Name another file, or remove it first.")
    html.write_text(to_html(found), encoding="utf-8")
    emit({"pipeline": pipeline, "id": chosen, "file": str(html)}, as_json, lambda: say(f"Wrote {html}."))


def _newest_report(home: Path, pipeline: str) -> str:
    folder = home / "reports" / pipeline
    known = [path.stem for path in folder.glob("*.json") if path.stem.isdigit()] if folder.is_dir() else []
    if not known:
        raise ReportError(f"{pipeline} has no report yet.", next_step=f"Run `twinstream reconcile {pipeline}`.")
    return max(known, key=int)


def _show(found: Reconciliation, home: Path, as_json: bool) -> None:
    from twinstream.report.as_json import to_dict
    from twinstream.report.paths import report_path
    from twinstream.report.text import render

    def tell() -> None:
        out.print(render(found))
        page = report_path(home, found.pipeline, found.id)
        if page.is_file():
            say(f"The report as a page: {page}")
        modes = report_path(home, found.pipeline, "modes")
        if modes.is_file():
            say(f"Its modes compared: {modes}")

    emit(to_dict(found), as_json, tell)
