"""A long continuous run at a steady rate, with the driver's memory taken every few seconds: it must stay flat.

Resident memory of Python and of the JVM every few seconds, what the JVM uses beside its heap (classes, compiled code),
and the heap's live part: what is left after a collection that is asked for every minute. A driver grows into its heap
at first, so the second quarter of the time is compared with the last one.

    .venv/bin/python benchmarks/soak.py [--minutes 20] [--rate 500] [--every "1 second"]
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.lib.home import open_spark, scratch, settings_of
from benchmarks.lib.kafka import Steady, broker, make_topic
from benchmarks.lib.results import keep, keep_plot, pyplot
from benchmarks.lib.topic_ways import RECORDS
from benchmarks.lib.workload import topic, write_definition

SCRATCH = scratch("soak")
SAMPLE_SECONDS = 5.0
COLLECT_SAMPLES = 12
"""At every so many samples garbage is collected."""
MEGA = 1024**2
NAMES = {
    "jvm": "JVM, resident",
    "python": "Python, resident",
    "beside": "JVM, classes and compiled code",
    "heap": "heap, live after collection",
}
COLORS = ("#0b7285", "#9aa5b1", "#e8a33d", "#c2255c")


def main() -> None:
    """Streams, samples and reports."""
    from twinstream.engine import Engine
    from twinstream.runtime.continuous import ContinuousRequest
    from twinstream.runtime.progress import Progress

    arguments = _arguments()
    shutil.rmtree(SCRATCH, ignore_errors=True)
    write_definition(SCRATCH, "bench_live", topic("live"), RECORDS)
    with broker(SCRATCH) as address:
        make_topic(address, "live")
        spark = open_spark(SCRATCH, address)
        seconds = arguments.minutes * 60
        producer = Steady(address, "live", arguments.rate, int(arguments.rate * seconds))
        sampling = Sampling(spark)
        engine = Engine(settings_of(SCRATCH, address), spark)
        producer.start()
        sampling.start()
        try:
            done = engine.continuous("bench_live", ContinuousRequest(arguments.every, seconds, 0), Progress())
        finally:
            sampling.enough.set()
            sampling.join()
            behind = max(0, producer.count - engine.ledger.batches.totals(1)["read"])
            engine.close()
            spark.stop()
    shutil.rmtree(SCRATCH)
    _report(sampling.samples, done, behind, arguments)


class Sampling(threading.Thread):
    """Takes the driver's memory every few seconds."""

    def __init__(self, spark) -> None:
        super().__init__(daemon=True)
        self._jvm = spark._jvm
        self.enough = threading.Event()
        self.samples: list[dict[str, float]] = []

    def run(self) -> None:
        import psutil

        here = psutil.Process()
        began = time.monotonic()
        java = next(one for one in here.children(recursive=True) if "java" in one.name())
        memory = self._jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
        live = 0.0
        while not self.enough.wait(SAMPLE_SECONDS):
            if len(self.samples) % COLLECT_SAMPLES == 0:
                self._jvm.java.lang.System.gc()
                live = memory.getHeapMemoryUsage().getUsed() / MEGA
            self.samples.append(
                {
                    "minutes": (time.monotonic() - began) / 60,
                    "jvm": java.memory_info().rss / MEGA,
                    "python": here.memory_info().rss / MEGA,
                    "beside": memory.getNonHeapMemoryUsage().getUsed() / MEGA,
                    "heap": live,
                }
            )


def _report(samples: list[dict[str, float]], done, behind: int, arguments: argparse.Namespace) -> None:
    lines = [
        f"{arguments.minutes:g} minutes at {arguments.rate:,.0f} events/s, trigger of {arguments.every}, heap of 1 GB: "
        f"{done.records:,} records in {done.txids:,} txids, {behind:,} records behind at the end",
        "",
        "| memory | second quarter | last quarter | ratio |",
        "| --- | ---: | ---: | ---: |",
    ]
    quarter = len(samples) // 4
    for name, text in NAMES.items():
        before = statistics.median(one[name] for one in samples[quarter : 2 * quarter])
        after = statistics.median(one[name] for one in samples[-quarter:])
        lines.append(f"| {text} | {before:,.0f} MB | {after:,.0f} MB | {after / max(before, 1):.2f} × |")
    text = "\n".join(lines)
    print(text)
    keep("soak", text)
    _plot(samples)


def _plot(samples: list[dict[str, float]]) -> None:
    figure, axes = pyplot().subplots(figsize=(7, 3))
    for (name, text), color in zip(NAMES.items(), COLORS, strict=True):
        axes.plot([one["minutes"] for one in samples], [one[name] for one in samples], label=text, color=color)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("minutes")
    axes.set_ylabel("MB")
    axes.legend(frameon=False, fontsize=8)
    keep_plot("soak", figure)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--rate", type=float, default=500)
    parser.add_argument("--every", default="1 second")
    return parser.parse_args()


if __name__ == "__main__":
    main()
