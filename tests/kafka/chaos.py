"""Runners of both modes killed at random while records keep coming; then the result is held against a plain consumer's.

Two continuous runners and two drains wait for one lease; whoever gets it is killed a moment later, or kills itself at a
failpoint, and another one goes on while the next is started. The producer sends records twice, late, out of order and
broken. At the end everything is drained, and what may not be is counted: rows other than the truth, accounting that is
not closed, txids that are committed twice or not at all, offsets that no txid or two txids have.

    .venv/bin/python -m tests.kafka.chaos --kills 100 --seed 7 [--minutes 7] [--folder DIR]

With a folder it goes on where the last call ended, and the totals are of all calls.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import select

from bin.lib.local.kafka import Kafka
from bin.lib.local.processes import Started, stop
from tests.faults.processes import Command
from tests.kafka.home import KafkaHome, event
from tests.kafka.test_plan import everything, offsets
from tests.kafka.topic import Topic
from tests.servers.spark_connect import spark_connect_server
from twinstream.ledger.schema import attempts
from twinstream.settings import Settings
from twinstream.sinks.delta import DeltaStore
from twinstream.sinks.snapshot import read_notes
from twinstream.spark import open_session
from twinstream.transaction import Outcome

ROOT = Path(__file__).resolve().parents[2]
NAME = "page_views"
PER_SECOND = 150
PARTITIONS = 3
KILLED = -signal.SIGKILL
FENCED = 1
START = datetime(2026, 3, 1, 10, tzinfo=UTC)
STEPS = (
    "ledger.plan", "ledger.attempt", "ledger.processed", "ledger.committed", "ledger.renew", "ledger.run",
    "ledger.run-note", "ledger.rate", "stage.group", "stage.late", "stage.base", "sink.commit", "sink.fence",
    "sink.base", "sink.remove-staging", "publish.commit", "continuous.forget",
)  # fmt: skip
"""Where a runner may kill itself; one that never passes there is killed from outside."""
QUICK = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
CONTINUOUS = ["continuous", NAME, "--every", "200 milliseconds", "--wait", "600"]
DRAIN = ["drain", NAME, "--wait", "600"]


@dataclass
class Totals:
    """Of all calls on one folder."""

    topic: str
    kills: int = 0
    at_failpoints: int = 0
    continuous: int = 0
    """How many of the kills hit a continuous runner."""
    sent: int = 0
    commits: int = 0
    seconds: float = 0.0
    seeds: list[int] = field(default_factory=list)
    violations: int = 0


class Sending(threading.Thread):
    """A producer that is as bad as they come."""

    def __init__(self, topic: Topic, chance: random.Random, sent: int) -> None:
        super().__init__(daemon=True)
        self._topic, self._chance, self.sent = topic, chance, sent
        self._enough = threading.Event()

    def run(self) -> None:
        producer = self._topic.producer()
        while not self._enough.wait(0.1):
            for value in self._some(PER_SECOND // 10):
                producer.produce(self._topic.name, value=value, key=str(self.sent), partition=self.sent % PARTITIONS)
                self.sent += 1
            producer.flush(60)

    def stop(self) -> None:
        self._enough.set()
        self.join()

    def _some(self, count: int) -> Iterator[str]:
        before = event(0)
        for _ in range(count):
            drawn = self._chance.random()
            at = START + timedelta(seconds=self.sent / 20 + self._chance.uniform(-300, 0))
            if drawn < 0.02:
                yield "broken" * self._chance.randrange(3)
            elif drawn < 0.05:
                yield before
            elif drawn < 0.06:
                yield event(self.sent, at="2099-01-01T00:00:00Z")
            else:
                at -= timedelta(hours=3) if drawn < 0.10 else timedelta()
                page, cents = self._chance.choice("abcd"), self._chance.randrange(10_000)
                before = event(self.sent, f"/{page}", at.strftime("%Y-%m-%dT%H:%M:%SZ"), f"{cents / 100:.2f}")
                yield before


@dataclass
class Runner:
    """A command that waits for the lease; `patience` is how long it may hold it."""

    command: Command
    continuous: bool
    patience: float
    failpoint: str
    held_since: float | None = None


class Chaos:
    """The runners of one call."""

    def __init__(self, home: ConsumedOnce, connect: str, totals: Totals, chance: random.Random) -> None:
        self._home, self._connect, self._totals, self._chance = home, connect, totals, chance
        self._running: list[Runner] = []

    def run(self, kills: int, until: float) -> None:
        """Kills until there were so many kills or the time is over, then leaves nobody behind."""
        deadline_of_progress = time.monotonic() + 180
        seen = self._totals.kills
        while self._totals.kills < kills and time.monotonic() < until:
            self._fill()
            self._look()
            if self._totals.kills != seen:
                seen, deadline_of_progress = self._totals.kills, time.monotonic() + 180
            assert time.monotonic() < deadline_of_progress, "nobody got the lease for three minutes"
            time.sleep(0.05)
        for runner in self._running:
            if runner.command.process.is_alive():
                os.kill(runner.command.pid, signal.SIGKILL)
            runner.command.wait()

    def _fill(self) -> None:
        for continuous in (True, False):
            while sum(runner.continuous == continuous for runner in self._running) < 2:
                self._running.append(self._start(continuous))

    def _start(self, continuous: bool) -> Runner:
        point = ""
        if self._chance.random() < 0.5:
            side = self._chance.choice(("before", "after"))
            point = f"{self._chance.choice(STEPS)}:{side}@{self._chance.randint(1, 4)}"
        environment = {
            "TWINSTREAM_HOME": str(self._home.folder),
            "TWINSTREAM_PIPELINES": str(self._home.pipelines),
            "TWINSTREAM_KAFKA_DEFAULT": self._home.connection,
            "TWINSTREAM_MASTER": "local[1]" if continuous else self._connect,
            "TWINSTREAM_DRIVER_MEMORY": "512m",
            "TWINSTREAM_LEASE_SECONDS": "3",
            "TWINSTREAM_FAILPOINT": point,
        }
        command = Command(self._home.folder / "said", CONTINUOUS if continuous else DRAIN, environment)
        return Runner(command, continuous, self._chance.uniform(0.1, 4.0), point)

    def _look(self) -> None:
        holder = self._holder()
        now = time.monotonic()
        for runner in list(self._running):
            if holder == runner.command.pid and runner.held_since is None:
                runner.held_since = now
            if runner.held_since is not None and now - runner.held_since > runner.patience:
                with suppress(ProcessLookupError):  # it has ended by itself
                    os.kill(runner.command.pid, signal.SIGKILL)
                runner.command.process.join()
            if not runner.command.process.is_alive():
                self._running.remove(runner)
                self._count(runner, now)

    def _count(self, runner: Runner, now: float) -> None:
        ended = runner.command.wait()
        assert ended.code in (0, FENCED, KILLED), ended.err
        if ended.code != KILLED:
            return
        self._totals.kills += 1
        self._totals.continuous += runner.continuous
        by_itself = runner.held_since is None or now - runner.held_since <= runner.patience
        self._totals.at_failpoints += by_itself
        where = runner.failpoint if by_itself else "at random"
        print(f"kill {self._totals.kills}: {'continuous' if runner.continuous else 'drain'} {where}", file=sys.stderr)

    def _holder(self) -> int | None:
        """The process that holds the lease."""
        generation = self._home.books.ledger.generations.current(NAME)
        found = generation and self._home.books.ledger.leases.holder(generation.id)
        return int(found[0].partition(" pid ")[2].split()[0]) if found and found[2] else None


@dataclass
class ConsumedOnce(KafkaHome):
    """Reads every partition once and cuts the txids out of it."""

    def __post_init__(self) -> None:
        self.books = self.engine()
        self._whole: dict[int, dict[int, Any]] = {}

    @property
    def settings(self) -> Settings:
        return replace(super().settings, jars=ROOT / ".jars")

    def consume(self, ends: list[int]) -> None:
        self._whole = {
            number: {one.offset(): one.value() for one in self.topic.read(number, 0, end)}
            for number, end in enumerate(ends)
        }

    def _consumed(self, payload: Any) -> list[Any]:
        return [
            self._whole[int(number)][offset]
            for known in payload["topics"].values()
            for number, (start, end) in known["partitions"].items()
            for offset in range(start, end)
        ]


def violations(home: ConsumedOnce, topic: Topic) -> list[str]:
    """What must not be, and is."""
    ends = [topic._end(number) for number in range(PARTITIONS)]
    home.consume(ends)
    found = []
    ledger = home.books.ledger
    generation = ledger.generations.current(NAME)
    assert generation is not None
    try:
        planned = [batch.range for batch in ledger.batches.get(generation.id, 1, generation.last_txid)]
        if offsets(planned) != everything(topic, *ends):
            found.append("offsets that no txid has")
    except AssertionError:
        found.append("offsets that two txids have")
    if generation.frontier != generation.last_txid:
        found.append(f"the frontier is {generation.frontier} of {generation.last_txid}")
    [folder] = home.folder.glob(f"tables/{NAME}/_twinstream/g*")
    store = DeltaStore(folder, folder.name, {})
    snapshot = store.snapshot()
    notes = [row["_txid"] for file in snapshot.files["manifest"] for row in read_notes(store.folder / file.path)]
    if sorted(notes) != list(range(1, generation.frontier + 1)):
        found.append("manifests that are missing or there twice")
    with ledger.database.read() as connection:
        rows = connection.execute(select(attempts).where(attempts.c.outcome == Outcome.COMMITTED)).all()
    counted = Counter(txid for row in rows for txid in range(row.first_txid, row.last_txid + 1))
    if counted != dict.fromkeys(range(1, generation.frontier + 1), 1):
        found.append("txids that are committed twice or not at all")
    expected = home.truth(NAME, "side")
    if home.accounting(NAME) != {int(txid): dict(value) for txid, value in expected.per_txid.items()}:
        found.append("accounting that is not the truth's")
    is_, should = Counter(home.read(NAME)), Counter(tuple(row) for row in expected.rows)
    found += [f"row {row}" for row in ((is_ - should) + (should - is_)).elements()]
    return found


@contextmanager
def _broker(folder: Path) -> Iterator[Kafka]:
    kafka = Kafka(folder / "kafka", ROOT / ".kafka")
    process = kafka.start()
    try:
        kafka.wait(process)
        yield kafka
    finally:
        stop(Started.of("kafka", process))


def main() -> None:
    """Kills, checks, and prints the totals."""
    given = _arguments()
    began = time.monotonic()
    _quicken(given.folder)
    state = given.folder / "totals.json"
    totals = Totals(**json.loads(state.read_text())) if state.exists() else Totals("page_views")
    totals.seeds.append(given.seed)
    chance = random.Random(given.seed)
    with ExitStack() as until_the_end:
        kafka = until_the_end.enter_context(_broker(given.folder))
        topic = Topic(kafka.address, totals.topic)
        connect = until_the_end.enter_context(spark_connect_server(QUICK))
        if state.exists():
            home = ConsumedOnce(given.folder / "home", None, given.folder / "home" / "pipelines", topic, kafka.address)
        else:
            topic.make(PARTITIONS)
            home = ConsumedOnce.on(given.folder / "home", None, topic)  # type: ignore[assignment]
            home.change(NAME, "batch_records=100_000", "batch_records=500")
            (home.folder / "said").mkdir()
        sending = Sending(topic, random.Random(given.seed + 1), totals.sent)
        sending.start()
        Chaos(home, connect, totals, chance).run(given.kills, began + given.minutes * 60)
        sending.stop()
        totals.sent = sending.sent
        home.spark = open_session(home.settings, "chaos")
        home.drain(NAME, wait_seconds=60)
        found = violations(home, topic)
        home.spark.stop()
        generation = home.books.ledger.generations.current(NAME)
        totals.commits = generation.frontier if generation else 0
        home.books.close()
    totals.violations += len(found)
    totals.seconds += time.monotonic() - began
    state.write_text(json.dumps(asdict(totals)))
    for one in found[:20]:
        print(one, file=sys.stderr)
    print(
        f"seeds {', '.join(map(str, totals.seeds))}: {totals.kills} kills ({totals.continuous} of continuous runners, "
        f"{totals.at_failpoints} at failpoints), {totals.sent:,} records, {totals.commits:,} commits, "
        f"{totals.violations} violations, {totals.seconds / max(totals.kills, 1):.1f} s a kill"
    )
    sys.exit(1 if found else 0)


def _quicken(folder: Path) -> None:
    """A Spark that lives for seconds is started often: nothing is compiled that will not be used again."""
    folder.mkdir(parents=True, exist_ok=True)
    conf = folder / "conf"
    conf.mkdir(exist_ok=True)
    (conf / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in QUICK.items()))
    os.environ |= {
        "SPARK_CONF_DIR": str(conf),
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto",
        "TWINSTREAM_JARS": str(ROOT / ".jars"),
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    given.folder = (given.folder or Path(tempfile.mkdtemp(prefix="twinstream-chaos-"))).absolute()
    return given


if __name__ == "__main__":
    main()
