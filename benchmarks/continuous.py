"""Continuous mode against its peers, in one run on the same topic: windowed counts and sums of JSON events.

(a) Twinstream continuous and plain Structured Streaming with foreachBatch + MERGE into Delta, both with a trigger of
one second and the same number of records a batch of the query: first a backlog (throughput; Twinstream drains what
waits beyond one batch in larger groups before its query begins), then events that come at a steady rate (latency from
the record's timestamp until its commit is visible). (b) Twinstream draining the backlog and one plain Spark batch read
and aggregation of the same offsets into Delta. (c) Kafka to Kafka by Twinstream's real-time mode and by plain
Structured Streaming with an interval trigger of one second: latency from the record's timestamp in
one topic to that in the other.

    .venv/bin/python benchmarks/continuous.py [--events 2000000] [--rate 1000] [--seconds 40] [--only a,b,c]
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.lib.home import open_spark, say, scratch
from benchmarks.lib.kafka import PARTITIONS, Steady, broker, make_topic, send_backlog
from benchmarks.lib.results import OURS, PEER, keep, keep_plot, pyplot
from benchmarks.lib.topic_ways import EVERY, RECORDS, Ways
from benchmarks.lib.workload import topic, write_definition, write_forwarding

SCRATCH = scratch("continuous")
BACKLOG, LIVE, OUT = "backlog", "live", "out"


def main() -> None:
    """Runs the chosen parts and reports."""
    arguments = _arguments()
    shutil.rmtree(SCRATCH, ignore_errors=True)
    for name in (BACKLOG, LIVE):
        write_definition(SCRATCH, f"bench_{name}", topic(name), RECORDS)
    with broker(SCRATCH) as address:
        spark = open_spark(SCRATCH, address)
        try:
            make_topic(address, BACKLOG)
            started = time.monotonic()
            send_backlog(spark, address, BACKLOG, arguments.events)
            say(f"{arguments.events:,} events sent", time.monotonic() - started)
            bench = Bench(Ways(spark, address, SCRATCH), address, arguments)
            found: dict[str, float] = {}
            for part in ("b", "a", "c"):
                if part in arguments.only.split(","):
                    found |= getattr(bench, f"part_{part}")()
        finally:
            spark.stop()
    _report(found, arguments)
    shutil.rmtree(SCRATCH)


class Bench:
    """Measures the ways."""

    def __init__(self, ways: Ways, address: str, arguments: argparse.Namespace) -> None:
        self.ways = ways
        self.address = address
        self.events = arguments.events
        self.rate = arguments.rate
        self.seconds = arguments.seconds
        self.repeat = arguments.repeat

    def part_a(self) -> dict[str, float]:
        """Twinstream's continuous mode against foreachBatch and MERGE: a backlog, then a steady rate."""
        found: dict[str, float] = {}
        for name, way in (("MERGE", self.ways.merge), ("continuous", self.ways.continuous)):
            way(BACKLOG, lambda: None, min(self.events, 3 * RECORDS))
            self.ways.forget()
            started = time.monotonic()
            way(BACKLOG, lambda: None, self.events)
            found[f"{name} records/s"] = self.events / (time.monotonic() - started)
            say(f"{name}, backlog", time.monotonic() - started)
            self.ways.forget()
            found |= self._quantiles(name, f"{name}, p50 at {self.rate} events/s", self._live(name, way))
            self.ways.forget()
        return found

    def part_b(self) -> dict[str, float]:
        """Draining the backlog against one plain batch job over the same offsets."""
        ways: dict[str, Callable[[], object]] = {
            "plain batch job": lambda: self.ways.plain(BACKLOG),
            "plain batch job, parsed once": lambda: self.ways.plain(BACKLOG, once=True),
            "drain": self._drain,
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(-1, self.repeat):
            for name, way in ways.items():
                self.ways.forget()
                started = time.monotonic()
                way()
                if turn >= 0:
                    times[name].append(time.monotonic() - started)
                say(name, time.monotonic() - started)
        return {name: statistics.median(found) for name, found in times.items()}

    def part_c(self) -> dict[str, float]:
        """Kafka to Kafka by Twinstream's real-time mode and by Structured Streaming's interval trigger."""
        ways: dict[str, Callable[[Steady], list[float]]] = {
            "interval": lambda producer: self.ways.forward(LIVE, OUT, producer),
            "real-time": lambda producer: self.ways.real_time("bench_forward", OUT, producer),
        }
        write_forwarding(SCRATCH, "bench_forward", LIVE, OUT)
        found: dict[str, float] = {}
        for name, way in ways.items():
            self.ways.forget()
            make_topic(self.address, LIVE)
            make_topic(self.address, OUT, {"message.timestamp.type": "LogAppendTime"})
            count = int(self.rate * self.seconds)
            waited = way(Steady(self.address, LIVE, self.rate, count))
            assert len(waited) > count / 2, f"{name} forwarded {len(waited)}"
            found |= self._quantiles(name, f"{name}, p50 at {self.rate} events/s", waited)
        return found

    def _drain(self) -> None:
        records = self.ways.drain(BACKLOG)
        assert records == self.events, records

    def _live(self, name: str, way: Callable) -> list[float]:
        """Latencies at a steady rate; the first seconds, in which a query finds its pace, are not counted."""
        from twinstream.modes.latency import latencies

        make_topic(self.address, LIVE)
        count = int(self.rate * self.seconds)
        producer = Steady(self.address, LIVE, self.rate, count)
        Steady(self.address, LIVE, 1000, 10).send()
        visible = way(LIVE, producer.start, count + 10)
        producer.join()
        began = producer.began + 5
        waited = latencies({"bootstrap.servers": self.address}, [one for one in visible if one.at > began])
        assert len(waited) > count / 2, f"{name} showed {len(waited)} of {count}"
        return waited

    def _quantiles(self, name: str, told: str, waited: list[float]) -> dict[str, float]:
        from twinstream.modes.latency import quantile

        found = {f"{name} p{share}": quantile(waited, share / 100) for share in (50, 99)}
        say(told, found[f"{name} p50"])
        return found


def _report(found: dict[str, float], arguments: argparse.Namespace) -> None:
    lines = [
        f"{arguments.events:,} JSON events in {PARTITIONS} partitions, then {arguments.rate:,.0f} events/s for "
        f"{arguments.seconds:.0f} s; trigger of {EVERY}, at most {RECORDS:,} records a batch of a query, "
        "driver heap 1 GB",
        "",
        "| what | peer | Twinstream | ratio | aim |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]

    def line(what: str, peer: str, ours: str, unit: str, aim: str) -> None:
        if peer in found and ours in found:
            form = ",.0f" if unit == "records/s" else ".3f" if unit == "s" and found[ours] < 1 else ".2f"
            lines.append(
                f"| {what} | {found[peer]:{form}} {unit} | {found[ours]:{form}} {unit} "
                f"| {found[ours] / found[peer]:.2f} × | {aim} |"
            )

    line("continuous, throughput, against foreachBatch + MERGE", "MERGE records/s", "continuous records/s",
         "records/s", "≥ 2 ×")  # fmt: skip
    line("continuous, event to visible, median", "MERGE p50", "continuous p50", "s", "≤ 1 ×")
    line("continuous, event to visible, 99 %", "MERGE p99", "continuous p99", "s", "")
    line("drain, against one plain batch job", "plain batch job", "drain", "s", "≤ 1.5 ×")
    line("drain, against one that parses each record once", "plain batch job, parsed once", "drain", "s", "")
    line("Kafka to Kafka, real-time mode against Spark's interval trigger, median", "interval p50", "real-time p50",
         "s", "≤ 0.1 ×")  # fmt: skip
    line("Kafka to Kafka, 99 %", "interval p99", "real-time p99", "s", "")
    text = "\n".join(lines)
    print(text)
    if set(arguments.only.split(",")) == {"a", "b", "c"}:
        keep("continuous", text)
        _plot(found)


def _plot(found: dict[str, float]) -> None:
    panels = [
        ("backlog, records/s (more is better)", {"foreachBatch + MERGE": "MERGE records/s",
                                                 "Twinstream": "continuous records/s"}, "%.0f"),
        ("event to visible, median s", {"foreachBatch + MERGE": "MERGE p50", "Twinstream": "continuous p50"}, "%.2f"),
        ("all of the backlog, s", {"plain batch job": "plain batch job", "Twinstream drain": "drain"}, "%.1f"),
        ("Kafka to Kafka, median s", {"interval trigger": "interval p50", "real-time": "real-time p50"}, "%.3f"),
    ]  # fmt: skip
    figure, axes = pyplot().subplots(2, 2, figsize=(10, 3.6))
    for place, (title, shown, form) in zip(axes.flat, panels, strict=True):
        bars = place.barh(list(shown), [found[name] for name in shown.values()], color=[PEER, OURS])
        place.bar_label(bars, fmt=form, padding=3)
        place.margins(x=0.18)
        place.invert_yaxis()
        place.set_xticks([])
        place.set_title(title, fontsize=9)
    keep_plot("continuous", figure)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--rate", type=float, default=1_000)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default="a,b,c")
    return parser.parse_args()


if __name__ == "__main__":
    main()
