"""The home of a benchmark: its folders, its settings, its Spark, and events in files."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from benchmarks.lib.workload import SCHEMA

ROOT = Path(__file__).resolve().parents[2]


def scratch(name: str) -> Path:
    """Where a benchmark works; nothing in it is kept with the source."""
    return ROOT / "benchmarks" / "scratch" / name


def settings_of(home: Path, broker: str = ""):
    """Settings of a home of its own, whatever the environment says."""
    from twinstream.settings import Settings

    variables = {"TWINSTREAM_HOME": str(home), "TWINSTREAM_PIPELINES": str(home / "pipelines")}
    if broker:
        variables["TWINSTREAM_KAFKA_DEFAULT"] = broker
    return replace(Settings.from_env(variables), jars=ROOT / ".jars")


def open_spark(home: Path, broker: str = ""):
    """A Spark as the engine opens it."""
    from twinstream.spark import open_session

    return open_session(settings_of(home, broker), "benchmark")


def generate_events(folder: Path, events: int, per_file: int, seed: int = 7, start: datetime | None = None) -> None:
    """Writes JSON events for the workload."""
    from twinstream.columns import parse_columns
    from twinstream.generator import generate

    say(f"Generating {events:,} events …")
    folder.mkdir(parents=True)
    generate(
        parse_columns(SCHEMA), folder, record_id="event_id", event_time="at", events=events, seed=seed,
        events_per_file=per_file, rate=80.0, start=start,
    )  # fmt: skip


def forget(home: Path, *folders: str) -> None:
    """Deletes what ways left behind, and the ledger."""
    for name in ("tables", "checkpoints", *folders):
        shutil.rmtree(home / name, ignore_errors=True)
    for path in home.glob("ledger.db*"):
        path.unlink()


def say(what: str, seconds: float | None = None) -> None:
    """Tells whoever waits what was done, and how long it took."""
    print(what if seconds is None else f"{what:<46} {seconds:8.2f} s", file=sys.stderr, flush=True)
