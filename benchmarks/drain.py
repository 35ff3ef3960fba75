"""Draining against its peers, in one run on the same events: windowed counts and sums of JSON events into Delta.

(a) one plain Spark batch job; (b) Structured Streaming with foreachBatch and MERGE over the same splits; (c) Structured
Streaming's own stateful aggregation into a no-op sink; (d) Twinstream, with digests, accounting and ledger on.

    .venv/bin/python benchmarks/drain.py [--events 5000000] [--txids 50] [--only a,d]
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRATCH = ROOT / "benchmarks" / "scratch" / "drain"
RESULTS = ROOT / "benchmarks" / "results"
SCHEMA = "event_id string, page string, amount decimal(12,2), at timestamp"
NAMES = {
    "a": "plain Spark batch job",
    "b": "foreachBatch + MERGE",
    "c": "stateful aggregation, no-op sink",
    "d": "Twinstream drain",
}

DEFINITION = """
from twinstream import Aggregate, DeltaSink, FileSource, Pipeline, Watermark, count, fixed, sum_

pipeline = Pipeline(
    name="bench",
    source=FileSource("data", format="json", schema="{schema}"),
    record_id="event_id",
    event_time="at",
    prepare="select event_id, page, amount, at from events where page is not null",
    operator=Aggregate(by=["page"], window=fixed("1 minute"), measures={{"views": count(), "spend": sum_("amount")}}),
    watermark=Watermark(delay="10 minutes", late="drop", max_future="1 hour"),
    sink=DeltaSink("tables/bench"),
    batch_records={records},
)
"""


def main() -> None:
    """Runs the chosen ways and reports."""
    arguments = _arguments()
    per_txid = arguments.events // arguments.txids
    home = SCRATCH / f"{arguments.events}-{arguments.txids}"
    _generate(home, arguments.events, per_txid)
    spark = _open(home)
    files = sorted(str(path) for path in (home / "data").glob("*.json"))
    ways: dict[str, Callable[[], None]] = {
        "a": lambda: _plain(spark, files, home),
        "b": lambda: _merge(spark, home),
        "c": lambda: _stateful(spark, home),
        "d": lambda: _drain(spark, home, per_txid),
    }
    chosen = [name for name in ways if name in arguments.only.split(",")]
    _warm_up(ways, chosen, spark, home, per_txid)
    times: dict[str, list[float]] = {name: [] for name in chosen}
    for turn in range(arguments.repeat):
        for name in chosen:
            if name in "bc" and turn > 0:
                continue
            _forget(home)
            started = time.monotonic()
            ways[name]()
            times[name].append(time.monotonic() - started)
            print(f"{NAMES[name]:<36} {times[name][-1]:8.2f} s", file=sys.stderr, flush=True)
    spark.stop()
    _report({name: statistics.median(found) for name, found in times.items()}, arguments)


def _plain(spark, files, home) -> None:
    from pyspark.sql import functions as F

    rows = spark.read.schema(SCHEMA).json(files).where("page is not null")
    result = rows.groupBy("page", F.window("at", "1 minute")).agg(
        F.count(F.lit(1)).alias("views"), F.sum("amount").alias("spend")
    )
    result.write.format("delta").save(str(home / "plain"))


def _merge(spark, home) -> None:
    """What people usually write: each micro-batch aggregated and merged into the table."""
    from delta.tables import DeltaTable
    from pyspark.sql import functions as F

    target = str(home / "merged")
    spark.createDataFrame(
        [], "page string, window struct<start:timestamp,end:timestamp>, views bigint, spend decimal(22,2)"
    ).write.format("delta").save(target)

    def upsert(batch, _number) -> None:
        part = (
            batch.where("page is not null")
            .groupBy("page", F.window("at", "1 minute"))
            .agg(F.count(F.lit(1)).alias("views"), F.sum("amount").alias("spend"))
        )
        (
            DeltaTable.forPath(spark, target).alias("t")
            .merge(part.alias("p"), "t.page = p.page and t.window = p.window")
            .whenMatchedUpdate(set={"views": "t.views + p.views", "spend": "t.spend + p.spend"})
            .whenNotMatchedInsertAll()
            .execute()
        )  # fmt: skip

    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(home / "data"))
    query = stream.writeStream.foreachBatch(upsert).option("checkpointLocation", str(home / "merged-checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()


def _stateful(spark, home) -> None:
    from pyspark.sql import functions as F

    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(home / "data"))
    result = (
        stream.where("page is not null").withWatermark("at", "10 minutes")
        .groupBy("page", F.window("at", "1 minute"))
        .agg(F.count(F.lit(1)).alias("views"), F.sum("amount").alias("spend"))
    )  # fmt: skip
    query = result.writeStream.format("noop").outputMode("update")
    query.option("checkpointLocation", str(home / "stateful-checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()


def _drain(spark, home, per_txid) -> None:
    """The whole of it: planning, fingerprints, accounting, digests, ledger, commit."""
    from twinstream.engine import DrainRequest, Engine

    engine = Engine(_settings(home), spark)
    drained = engine.drain("bench", DrainRequest())
    assert drained.records % per_txid == 0, drained
    engine.close()


def _settings(home: Path):
    from twinstream.settings import Settings

    settings = Settings.from_env({"TWINSTREAM_HOME": str(home), "TWINSTREAM_PIPELINES": str(home / "pipelines")})
    return replace(settings, jars=ROOT / ".jars")


def _open(home: Path):
    from twinstream.spark import open_session

    return open_session(_settings(home), "benchmark")


def _generate(home: Path, events: int, per_txid: int) -> None:
    from twinstream.columns import parse_columns
    from twinstream.generator import generate

    (home / "pipelines").mkdir(parents=True, exist_ok=True)
    (home / "pipelines" / "bench.py").write_text(DEFINITION.format(schema=SCHEMA, records=per_txid))
    data = home / "data"
    if data.is_dir() and len(list(data.glob("*.json"))) == events // per_txid:
        return
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    print(f"Generating {events:,} events …", file=sys.stderr, flush=True)
    generate(
        parse_columns(SCHEMA), data, record_id="event_id", event_time="at", events=events, seed=7,
        events_per_file=per_txid, rate=80.0,
    )  # fmt: skip


def _warm_up(ways, chosen, spark, home, per_txid) -> None:
    """Every way once on the first file, so that no one pays for cold code."""
    small = home / "warm"
    shutil.rmtree(small, ignore_errors=True)
    (small / "data").mkdir(parents=True)
    shutil.copytree(home / "pipelines", small / "pipelines")
    first = sorted((home / "data").glob("*.json"))[:3]
    for path in first:
        shutil.copy2(path, small / "data" / path.name)
    for name in chosen:
        for _ in range(2):
            _forget(small)
            {
                "a": lambda: _plain(spark, [str(p) for p in (small / "data").glob("*.json")], small),
                "b": lambda: _merge(spark, small),
                "c": lambda: _stateful(spark, small),
                "d": lambda: _drain(spark, small, per_txid),
            }[name]()


def _forget(home: Path) -> None:
    for name in ("plain", "merged", "merged-checkpoint", "stateful-checkpoint", "tables"):
        shutil.rmtree(home / name, ignore_errors=True)
    for path in home.glob("ledger.db*"):
        path.unlink()


def _report(seconds: dict[str, float], arguments: argparse.Namespace) -> None:
    base = seconds.get("a")
    lines = [
        f"{arguments.events:,} JSON events in {arguments.txids} txids, driver heap 1 GB, median of {arguments.repeat} "
        "(b and c: one run)",
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
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "drain.md").write_text(text + "\n")
        _plot(seconds)


def _plot(seconds: dict[str, float]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 2.6))
    names = list(seconds)
    bars = axes.barh([NAMES[name] for name in names], [seconds[name] for name in names],
                     color=["#9aa5b1", "#9aa5b1", "#9aa5b1", "#0b7285"])  # fmt: skip
    axes.bar_label(bars, fmt="%.1f s", padding=3)
    axes.invert_yaxis()
    axes.set_xlabel("seconds (less is better)")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(RESULTS / "drain.png", dpi=150)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--txids", type=int, default=50)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default="a,b,c,d")
    return parser.parse_args()


if __name__ == "__main__":
    main()
