"""Taking over a continuous query: how long until the next commit, by a cold, a warm and a hot standby.

.venv/bin/python benchmarks/standby.py [--lease 10] [--rounds 3]

Cold: nothing is up; a process is started when the first one fails. Warm: a process waits for the lease with Spark up,
and does everything for the first time when it has it. Hot: `twinstream continuous --standby`, which has rehearsed that.
The first one is killed (on the same machine, where that is seen at once), or hangs (SIGSTOP), which only its lease can
tell. Records keep coming all the time.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.lib.home import ROOT, scratch
from benchmarks.lib.kafka import broker, make_topic
from benchmarks.lib.results import keep

SCRATCH = scratch("standby")
TOPIC = "views"
DEFINITION = """
from twinstream import Aggregate, DeltaSink, KafkaSource, Pipeline, count, fixed

pipeline = Pipeline(
    name="views",
    source=KafkaSource(topics="views", schema="event_id string, page string, at timestamp"),
    record_id="event_id",
    event_time="at",
    operator=Aggregate(by=["page"], window=fixed("1 minute"), measures={"views": count()}),
    sink=DeltaSink("tables/views"),
)
"""
CLI = [sys.executable, "-m", "twinstream.cli", "continuous", "views", "--every", "1 second", "--json", "--standby"]
WARM = """
import math
from twinstream.engine import Engine
from twinstream.runtime import continuous
from twinstream.runtime.progress import Progress
from twinstream.settings import Settings
continuous.rehearse = lambda *_: None
engine = Engine(Settings.from_env())
engine.spark()
engine.continuous("views", continuous.ContinuousRequest("1 second", None, math.inf), Progress())
"""
WAYS = {"cold": CLI, "warm": [sys.executable, "-c", WARM], "hot": CLI}
UP_SECONDS = 30.0
"""How long a standby that is not cold is given to come up."""


def main() -> None:
    """Measures all ways in one run, on one broker."""
    arguments = _arguments()
    shutil.rmtree(SCRATCH, ignore_errors=True)
    lines = [
        f"Seconds from the failure of the first runner to the next commit, median (slowest) of {arguments.rounds}; "
        f"lease {arguments.lease:g} s, a trigger of one second.",
        "",
        "| standby | the first was killed | the first hangs | beyond the lease |",
        "| --- | ---: | ---: | ---: |",
    ]
    with broker(SCRATCH) as address, _producing(address):
        for way, command in WAYS.items():
            found = {
                how: [_measure(way, command, how, arguments.lease, address) for _ in range(arguments.rounds)]
                for how in (signal.SIGKILL, signal.SIGSTOP)
            }
            killed, hung = found[signal.SIGKILL], found[signal.SIGSTOP]
            beyond = max(hung) - arguments.lease
            lines.append(f"| {way} | {_told(killed)} | {_told(hung)} | {max(beyond, 0):.1f} s |")
            print(lines[-1], flush=True)
    shutil.rmtree(SCRATCH, ignore_errors=True)
    text = "\n".join(lines)
    print(text)
    keep("standby", text)


def _told(times: list[float]) -> str:
    return f"{statistics.median(times):.1f} s ({max(times):.1f} s)"


def _measure(way: str, command: list[str], how: signal.Signals, lease: float, address: str) -> float:
    home = SCRATCH / f"{way}-{how.name}-{time.monotonic_ns()}"
    (home / "pipelines").mkdir(parents=True)
    (home / "pipelines" / "views.py").write_text(DEFINITION)
    environment = {
        **os.environ,
        "TWINSTREAM_HOME": str(home),
        "TWINSTREAM_PIPELINES": str(home / "pipelines"),
        "TWINSTREAM_KAFKA_DEFAULT": address,
        "TWINSTREAM_LEASE_SECONDS": str(lease),
        "TWINSTREAM_JARS": os.environ.get("TWINSTREAM_JARS", str(ROOT / ".jars")),
        "TWINSTREAM_MASTER": "local[2]",
    }
    running: list[subprocess.Popen[bytes]] = []

    def start(what: list[str]) -> None:
        with (home / "log").open("ab") as log:
            running.append(subprocess.Popen(what, env=environment, stdout=log, stderr=log, start_new_session=True))

    try:
        start(CLI)
        _wait(lambda: _epoch(home) == 1)
        if way != "cold":
            start(command)
            time.sleep(UP_SECONDS)
        first = running[0].pid
        began = time.monotonic()
        os.kill(first, how)
        if way == "cold":
            start(command)
        _wait(lambda: _epoch(home) > 1)
        return time.monotonic() - began
    finally:
        for process in running:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(home, ignore_errors=True)


def _epoch(home: Path) -> int:
    """The epoch of the newest commit."""
    from twinstream.ledger import Ledger

    if not (home / "ledger.db").exists():
        return 0
    ledger = Ledger.open(f"sqlite:///{home / 'ledger.db'}")
    try:
        generation = ledger.generations.current("views")
        if generation is None or not generation.frontier:
            return 0
        [batch] = ledger.batches.get(generation.id, generation.frontier, generation.frontier)
        return int(batch.epoch or 0)
    finally:
        ledger.close()


def _wait(holds: Any, seconds: float = 180.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:g} s")
        time.sleep(0.1)


@contextmanager
def _producing(address: str) -> Iterator[None]:
    from confluent_kafka import Producer

    make_topic(address, TOPIC)
    over = threading.Event()

    def send() -> None:
        producer, number = Producer({"bootstrap.servers": address}), 0
        while not over.wait(0.1):
            for _ in range(20):
                number += 1
                event = {"event_id": f"e{number}", "page": f"/{number % 7}", "at": "2026-03-01T10:00:00Z"}
                producer.produce(TOPIC, json.dumps(event))
            producer.flush(30)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(60)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lease", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
