"""Commands about definitions."""

import typer


def register(app: typer.Typer) -> None:
    """Filled in next."""
