"""Commands that look after the ledger: backup, restore, upgrade, rebuild."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twinstream.cli.output import AsJson, emit, number, say
from twinstream.cli.session import engine
from twinstream.cli.stream import Pipeline
from twinstream.settings import Settings

app = typer.Typer(no_args_is_help=True)
File = Annotated[Path, typer.Argument(help="The backup file.")]


@app.command()
def backup(file: File, as_json: AsJson = False) -> None:
    """Write the whole ledger into one file."""
    from twinstream.ledger.backup import backup as write

    with engine() as opened:
        rows = write(opened.ledger.database, file)
    emit({"file": str(file), "rows": rows}, as_json, lambda: say(f"Wrote {number(rows)} rows to {file}."))


@app.command()
def restore(file: File, as_json: AsJson = False) -> None:
    """Fill an empty ledger from a backup."""
    from twinstream.ledger.backup import restore as read

    with engine() as opened:
        rows = read(opened.ledger.database, file)
    emit({"file": str(file), "rows": rows}, as_json, lambda: say(f"Restored {number(rows)} rows from {file}."))


@app.command()
def upgrade(as_json: AsJson = False) -> None:
    """Bring the ledger's tables up to this version."""
    from twinstream.ledger.database import open_unchecked, revision
    from twinstream.ledger.database import upgrade as run

    database = open_unchecked(Settings.from_env().ledger_url)
    before = revision(database)
    run(database)
    after = revision(database)
    emit({"before": before, "after": after}, as_json, lambda: say(f"The ledger is at version {after}."))


@app.command()
def rebuild(pipeline: Pipeline, as_json: AsJson = False) -> None:
    """Bring a lost or outdated ledger up to what the sink's manifests say."""
    with engine() as opened:
        taken = opened.rebuild(pipeline)
    emit({"pipeline": pipeline, "txids": taken}, as_json, lambda: say(f"Took {taken} txids over from the sink."))
