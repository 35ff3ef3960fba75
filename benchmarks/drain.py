"""Draining against its peers, in one run on the same events: windowed counts and sums of JSON events into Delta.

(a) one plain Spark batch job; (b) Structured Streaming with foreachBatch and MERGE over the same splits; (c) Structured
Streaming's own stateful aggregation into a no-op sink; (d) Twinstream, with digests, accounting and ledger on. Each
has a driver of its own, and they take turns.

    .venv/bin/python benchmarks/drain.py [--events 5000000] [--txids 50] [--only a,d]
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.lib.home import forget, generate_events, open_spark, say, scratch, settings_of
from benchmarks.lib.results import OURS, PEER, keep, keep_plot, pyplot
from benchmarks.lib.workload import FILES, SCHEMA, Merged, aggregated, write_definition

NAMES = {
    "a": "plain Spark batch job",
    "b": "foreachBatch + MERGE",
    "c": "stateful aggregation, no-op sink",
    "d": "Twinstream drain",
}


def main() -> None:
    """Runs the chosen ways and reports."""
    arguments = _arguments()
    per_txid = arguments.events // arguments.txids
    home = scratch("drain") / f"{arguments.events}-{arguments.txids}"
    _prepare(home, arguments.events, per_txid)
    chosen = [name for name in NAMES if name in arguments.only.split(",")]
    drivers = {name: _start(name, home, per_txid) for name in chosen}
    times: dict[str, list[float]] = {name: [] for name in chosen}
    try:
        for turn in range(arguments.repeat):
            for name, driver in drivers.items():
                if name == "b" and turn > 0:
                    continue
                driver.send("go")
                times[name].append(driver.recv())
                say(NAMES[name], times[name][-1])
    finally:
        for driver in drivers.values():  # which ends it
            driver.close()
    _report({name: statistics.median(found) for name, found in times.items()}, arguments)


def _start(name: str, home: Path, per_txid: int) -> Connection:
    """A driver of its own for each way, ready when this returns: none has another one's state or compiled code."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    spawn.Process(target=_drive, args=(name, home, per_txid, theirs)).start()
    theirs.close()
    ours.recv()
    return ours


def _drive(name: str, home: Path, per_txid: int, asked: Connection) -> None:
    spark = open_spark(home)
    _warm_up(spark, name, home, per_txid)
    way = _ways(spark, home, per_txid)[name]
    asked.send("ready")
    with suppress(EOFError):
        while asked.recv():
            _forget(home)
            started = time.monotonic()
            way()
            asked.send(time.monotonic() - started)
    spark.stop()


def _ways(spark, home: Path, per_txid: int) -> dict[str, Callable[[], None]]:
    return {
        "a": lambda: _plain(spark, home),
        "b": lambda: _merge(spark, home),
        "c": lambda: _stateful(spark, home),
        "d": lambda: _drain(spark, home, per_txid),
    }


def _plain(spark, home: Path) -> None:
    files = sorted(str(path) for path in (home / "data").glob("*.json"))
    aggregated(spark.read.schema(SCHEMA).json(files)).write.format("delta").save(str(home / "plain"))


def _merge(spark, home: Path) -> None:
    table = Merged(spark, home / "merged")
    query = _stream(spark, home).writeStream.foreachBatch(lambda batch, _number: table.merge(batch))
    _run(query, home / "merged-checkpoint")


def _stateful(spark, home: Path) -> None:
    result = aggregated(_stream(spark, home).withWatermark("at", "10 minutes"))
    _run(result.writeStream.format("noop").outputMode("update"), home / "stateful-checkpoint")


def _stream(spark, home: Path):
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(home / "data"))


def _run(query, checkpoint: Path) -> None:
    query.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()


def _drain(spark, home: Path, per_txid: int) -> None:
    """The whole of it: planning, fingerprints, accounting, digests, ledger, commit."""
    from twinstream.engine import DrainRequest, Engine

    engine = Engine(settings_of(home), spark)
    drained = engine.drain("bench", DrainRequest())
    assert drained.records % per_txid == 0, drained
    engine.close()


def _prepare(home: Path, events: int, per_txid: int) -> None:
    write_definition(home, "bench", FILES, per_txid)
    data = home / "data"
    if len(list(data.glob("*.json"))) != events // per_txid:
        shutil.rmtree(data, ignore_errors=True)
        generate_events(data, events, per_txid)


def _warm_up(spark, name: str, home: Path, per_txid: int) -> None:
    """Twice on the first files, so that no one pays for cold code."""
    small = home / "warm"
    shutil.rmtree(small, ignore_errors=True)
    (small / "data").mkdir(parents=True)
    shutil.copytree(home / "pipelines", small / "pipelines")
    for path in sorted((home / "data").glob("*.json"))[:3]:
        shutil.copy2(path, small / "data" / path.name)
    for _ in range(2):
        _forget(small)
        _ways(spark, small, per_txid)[name]()


def _forget(home: Path) -> None:
    forget(home, "plain", "merged", "merged-checkpoint", "stateful-checkpoint")


def _report(seconds: dict[str, float], arguments: argparse.Namespace) -> None:
    base = seconds.get("a")
    lines = [
        f"{arguments.events:,} JSON events in {arguments.txids} txids, driver heap 1 GB, median of "
        f"{arguments.repeat} runs in turn (MERGE: one run)",
        "",
        "| way | seconds | against the plain batch job |",
        "| --- | ---: | ---: |",
    ]
    for name, value in seconds.items():
        ratio = f"{value / base:.2f} ×" if base else ""
        lines.append(f"| {NAMES[name]} | {value:.1f} | {ratio} |")
    text = "\n".join(lines)
    print(text)
    if set(seconds) == set(NAMES):
        keep("drain", text)
        _plot(seconds)


def _plot(seconds: dict[str, float]) -> None:
    figure, axes = pyplot().subplots(figsize=(7, 2.6))
    names = list(seconds)
    bars = axes.barh([NAMES[name] for name in names], [seconds[name] for name in names],
                     color=[PEER, PEER, PEER, OURS])  # fmt: skip
    axes.bar_label(bars, fmt="%.1f s", padding=3)
    axes.invert_yaxis()
    axes.set_xlabel("seconds (less is better)")
    keep_plot("drain", figure)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--txids", type=int, default=50)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", default="a,b,c,d")
    return parser.parse_args()


if __name__ == "__main__":
    main()
