"""Commands about definitions and the machine they run on: list, lint, new, doctor."""

from __future__ import annotations

import typer

from twinstream.cli import doctor, lint, listing, new


def register(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    app.command("list")(listing.list_pipelines)
    app.command()(lint.lint)
    app.command()(new.new)
    app.command()(doctor.doctor)
