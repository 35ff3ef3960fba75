"""Puts the commands together, turns errors into one clear message and an exit code."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from contextlib import suppress
from typing import NoReturn

import typer

from twinstream.cli import batch, compare, control, ledger, modes, pipelines, reconcile, results, stream
from twinstream.cli.output import report, say
from twinstream.errors import BadUsage, TwinstreamError, Unexpected

INTERRUPTED = 130

app = typer.Typer(
    name="twinstream",
    help="Exactly-once micro-batches on Spark, and the proof that the result is right.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (pipelines, stream, results, control, modes, batch, reconcile, compare):
    module.register(app)
app.add_typer(ledger.app, name="ledger", help="Look after the ledger.")


@app.callback()
def _root() -> None:
    """Exactly-once micro-batches on Spark, and the proof that the result is right."""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Runs a command line; exit code 0 good, 1 differences or a refused request, 2 bad input, 3 a fault of ours."""
    given = sys.argv[1:] if arguments is None else arguments
    as_json = "--json" in given
    try:
        code = app(given, prog_name="twinstream", standalone_mode=False)
    except TwinstreamError as error:
        report(error, as_json)
        _exit(error.exit_code)
    except typer.TyperException as error:
        _report_usage(error, as_json)
        _exit(2)
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except SystemExit as error:
        # Typer ends the process when nobody reads its output any more, as in `twinstream read P | head`.
        _exit(0 if isinstance(error.__context__, BrokenPipeError) else error.code)
    except Exception as error:
        if os.environ.get("TWINSTREAM_DEBUG"):
            raise
        unexpected = _unexpected(error)
        report(unexpected, as_json)
        _exit(unexpected.exit_code)
    if code == INTERRUPTED:
        say("Stopped. What was committed stays; the next drain goes on from there.")
    _exit(code if isinstance(code, int) else 0)


def run(arguments: list[str] | None = None) -> NoReturn:
    """A command line as all that this process does: its libraries stay, so they are neither looked through for garbage
    again and again while they are loaded nor taken apart at the end, which would take longer than many a command.
    """
    gc.set_threshold(50_000, 20, 50)
    code: object = 0
    try:
        main(arguments)
    except SystemExit as ended:
        code = ended.code
    atexit._run_exitfuncs()
    for output in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            output.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _report_usage(error: typer.TyperException, as_json: bool) -> None:
    """One message; `twinstream` alone has shown its help already and has nothing to add."""
    message = error.format_message().strip()
    if message:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "twinstream"
        report(BadUsage(message, untouched="", next_step=f"`{command} --help` shows how it is used."), as_json)


def _unexpected(error: Exception) -> Unexpected:
    lines = str(error).strip().splitlines()
    return Unexpected(
        f"{type(error).__name__}: {lines[0] if lines else ''}",
        untouched="Nothing was committed by the failed step.",
        next_step="Set TWINSTREAM_DEBUG=1 and run it again to see the details.",
    )


def _exit(code: object) -> NoReturn:
    sys.stdout.flush()
    sys.exit(code)  # type: ignore[arg-type]
