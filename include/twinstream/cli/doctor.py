"""`twinstream doctor`: is this machine ready, and if not, how is it mended?"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer

from twinstream.cli import checks
from twinstream.cli.checks import Check
from twinstream.cli.output import AsJson, emit, out, say
from twinstream.errors import SettingsError, TwinstreamError
from twinstream.settings import Settings

_STYLES = {"ok": "green", "warning": "yellow", "failed": "bold red", "skipped": "dim"}
WithSpark = Annotated[bool, typer.Option("--spark/--no-spark", help="Also start Spark and let it write a file.")]


def doctor(with_spark: WithSpark = True, as_json: AsJson = False) -> None:
    """Check Python, Java, Spark, jars, ledger and folders, and say how to mend what is wrong."""
    found: list[Check] = []
    for check in _examine(with_spark):
        found.append(check)
        if not as_json:
            _show(check)
    bad = sum(check.state == "failed" for check in found)
    data = {"ok": not bad, "checks": [asdict(check) for check in found]}
    verdict = f"{bad} of {len(found)} checks failed." if bad else "Everything that is needed is there."
    emit(data, as_json, lambda: say(verdict))
    if bad:
        raise typer.Exit(2)


def _examine(with_spark: bool) -> Iterator[Check]:
    """Check after check, each shown as soon as it is known: Spark takes its time."""
    basics = [checks.python(), checks.packages()]
    yield from basics
    try:
        settings = Settings.from_env()
    except SettingsError as error:
        yield checks.failed("settings", error.what, error.next_step)
        return
    java, home = checks.java(settings), checks.home(settings)
    yield java
    yield checks.environment()
    yield checks.jars(settings)
    yield home
    yield checks.ledger(settings)
    yield checks.pipelines(settings)
    needed = [check.name for check in (*basics, java, home) if check.state == "failed"]
    if not with_spark:
        yield checks.skipped("spark", "--no-spark")
    elif needed:
        yield checks.skipped("spark", f"not before {', '.join(needed)} is mended")
    else:
        yield from _by_spark(settings)


def _by_spark(settings: Settings) -> Iterator[Check]:
    from twinstream.cli.round_trip import round_trip
    from twinstream.pipeline import SPARK_MINOR
    from twinstream.spark import open_session

    silent = checks.answers(settings) if checks.uses_connect(settings) else None
    if silent is not None:
        yield silent
        return
    began = time.monotonic()
    try:
        spark = open_session(settings, "doctor")
    except TwinstreamError as error:
        yield checks.failed("spark", error.what, error.next_step)
        return
    try:
        place = checks.shown_master(settings)
        if spark.version.startswith(f"{SPARK_MINOR}."):
            yield checks.ok("spark", f"{spark.version} on {place}, ready in {time.monotonic() - began:.1f} s")
        else:
            yield checks.failed(
                "spark", f"{spark.version} on {place}", f"Use Spark {SPARK_MINOR}: results depend on its version."
            )
        yield round_trip(spark, settings.home)
    finally:
        spark.stop()


def _show(check: Check) -> None:
    out.print(f"{check.state:<8}", style=_STYLES[check.state], end="", markup=False)
    out.print(f" {check.name:<12} {check.found}", markup=False, soft_wrap=True)
    if check.mend:
        out.print(f"{'':<21} → {check.mend}", markup=False, soft_wrap=True)
