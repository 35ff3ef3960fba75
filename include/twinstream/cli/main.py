"""Puts the commands together, turns errors into one clear message and an exit code."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import click
import typer

from twinstream.cli import control, ledger, pipelines, results, stream
from twinstream.cli.output import report, say
from twinstream.errors import TwinstreamError

app = typer.Typer(
    name="twinstream",
    help="Exactly-once micro-batches on Spark, and the proof that the result is right.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (pipelines, stream, results, control):
    module.register(app)
app.add_typer(ledger.app, name="ledger", help="Look after the ledger.")


@app.callback()
def _root() -> None:
    """Exactly-once micro-batches on Spark, and the proof that the result is right."""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Runs a command line; exit code 0 good, 1 differences or a refused request, 2 bad input, 3 a fault of ours."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        code = app(given, standalone_mode=False)
    except TwinstreamError as error:
        report(error, "--json" in given)
        _exit(error.exit_code)
    except click.exceptions.Exit as error:
        _exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        _exit(2)
    except (click.Abort, KeyboardInterrupt):
        say("Stopped. What was committed stays; the next drain goes on from there.")
        _exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _exit(0)
    except Exception as error:
        if os.environ.get("TWINSTREAM_DEBUG"):
            raise
        lines = str(error).strip().splitlines()
        say(f"Unexpected error: {type(error).__name__}: {lines[0] if lines else ''}")
        say("  Nothing was committed by the failed step. Set TWINSTREAM_DEBUG=1 and run it again to see the details.")
        _exit(3)
    _exit(code if isinstance(code, int) else 0)


def _exit(code: int) -> NoReturn:
    sys.stdout.flush()
    sys.exit(code)
