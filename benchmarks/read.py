"""Reading a result after many small txids, folded in between as a drain does by itself, against a plain Delta table.

.venv/bin/python benchmarks/read.py [--txids 1000] [--events 500]
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRATCH = ROOT / "benchmarks" / "scratch" / "read"
RESULTS = ROOT / "benchmarks" / "results"
TURNS = 9
WARM = 5
"""Turns before the first that counts."""


def main() -> None:
    """Drains, writes the same result as a plain table, then reads both in turn."""
    arguments = _arguments()
    shutil.rmtree(SCRATCH, ignore_errors=True)
    engine = _drained(arguments.txids, arguments.events)
    plain = str(SCRATCH / "plain")
    engine.read("page_views").write.format("delta").save(plain)
    times: dict[str, list[float]] = {"ours": [], "plain": []}
    for turn in range(TURNS + WARM):
        for name, rows in (("ours", lambda: engine.read("page_views")), ("plain", lambda: _plain(engine, plain))):
            began = time.monotonic()
            rows().write.format("noop").mode("overwrite").save()
            if turn >= WARM:
                times[name].append(time.monotonic() - began)
    count = engine.read("page_views").count()
    engine.close()
    ours, theirs = (statistics.median(times[name]) for name in ("ours", "plain"))
    text = "\n".join([
        f"{arguments.txids:,} txids of {arguments.events:,} events, {count:,} rows in the result, median of {TURNS}.",
        "",
        "| way | seconds | against the plain table |",
        "| --- | ---: | ---: |",
        f"| plain Delta table | {theirs:.2f} | 1.00 × |",
        f"| Twinstream read | {ours:.2f} | {ours / theirs:.2f} × |",
    ])  # fmt: skip
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "read.md").write_text(text + "\n")
    shutil.rmtree(SCRATCH)


def _plain(engine, path):
    return engine.spark().read.format("delta").load(path)


def _drained(txids: int, events: int):
    from twinstream.engine import DrainRequest, Engine
    from twinstream.generator import generate
    from twinstream.settings import Settings

    settings = Settings.from_env(
        {"TWINSTREAM_HOME": str(SCRATCH), "TWINSTREAM_PIPELINES": str(ROOT / "include" / "pipelines")}
    )
    engine = Engine(replace(settings, jars=ROOT / ".jars"))
    pipeline = engine.definition("page_views").pipeline
    folder = SCRATCH / "data" / "page_views"
    folder.mkdir(parents=True)
    generate(
        pipeline.source.columns, folder, record_id=pipeline.record_id, event_time=pipeline.event_time,
        events=txids * events, seed=7, events_per_file=events, rate=20.0,
    )  # fmt: skip
    began = time.monotonic()
    engine.drain("page_views", DrainRequest(batch_records=events, group=20))
    print(f"drained in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return engine


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--txids", type=int, default=1_000)
    parser.add_argument("--events", type=int, default=500)
    return parser.parse_args()


if __name__ == "__main__":
    main()
