"""Ways to stream a topic: Twinstream's own, and what people write for Spark without it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from benchmarks.lib.home import forget, settings_of
from benchmarks.lib.kafka import PARTITIONS, Steady
from benchmarks.lib.workload import SCHEMA, Merged, aggregated

EVERY = "1 second"
RECORDS = 100_000
"""A batch has at most so many records."""


class Ways:
    """All of them, on one Spark, one broker and one home."""

    def __init__(self, spark, address: str, home: Path) -> None:
        self._spark, self._address, self._home = spark, address, home

    def forget(self) -> None:
        """Lets the next way begin as if there had been none."""
        forget(self._home, "plain", "merged", "merged-checkpoint")

    def plain(self, topic: str, once: bool = False) -> None:
        """One batch read and aggregation; as people write it, or so that Spark parses each record once."""
        rows = self._spark.read.format("kafka").options(**self._options(topic)).load()
        aggregated(_parsed(rows, once)).write.format("delta").save(str(self._home / "plain"))

    def drain(self, topic: str) -> int:
        """Twinstream's micro-batches; how many records they held."""
        from twinstream.engine import DrainRequest

        engine = self._engine()
        drained = engine.drain(f"bench_{topic}", DrainRequest())
        engine.close()
        return drained.records

    def continuous(self, topic: str, ready: Callable[[], None], until: int) -> list:
        """Twinstream's query, until so many records are committed; tells what became visible, and when."""
        from twinstream.modes.latency import committed
        from twinstream.runtime.continuous import ContinuousRequest
        from twinstream.runtime.progress import Progress

        stop = threading.Event()
        seen = 0

        class Watching(Progress):
            def committed(self, manifests, seconds) -> None:
                nonlocal seen
                if not seen:
                    ready()
                seen += sum(one.accounting.read.count for one in manifests)
                if seen >= until:
                    stop.set()

        # A short group keeps the batches of its query as large as the peer's; by itself it would make them larger.
        engine = self._engine(group_seconds=4.0)
        engine.continuous(f"bench_{topic}", ContinuousRequest(EVERY, wait_seconds=0), Watching(), stop)
        generation = engine.generation(engine.definition(f"bench_{topic}"))
        found = committed(engine.ledger.batches.get(generation.id, 1, generation.frontier))
        engine.close()
        return found

    def merge(self, topic: str, ready: Callable[[], None], until: int) -> list:
        """foreachBatch and MERGE, until it has had so many records; tells what became visible, and when."""
        from twinstream.modes.latency import Visible
        from twinstream.runtime.query import logged_offsets
        from twinstream.sources.kafka.spans import Span

        table, checkpoint = Merged(self._spark, self._home / "merged"), self._home / "merged-checkpoint"
        found: list = []
        before = dict.fromkeys(range(PARTITIONS), 0)
        stop = threading.Event()

        def upsert(batch, number) -> None:
            if not found:
                ready()
            table.merge(_parsed(batch))
            ends = {int(n): end for n, end in logged_offsets(checkpoint, number)[topic].items()}
            spans = {(topic, n): Span(before[n], end) for n, end in ends.items()}
            found.append(Visible(spans, time.time()))
            before.update(ends)
            if sum(ends.values()) >= until:
                stop.set()

        options = self._options(topic) | {"maxOffsetsPerTrigger": str(RECORDS)}
        rows = self._spark.readStream.format("kafka").options(**options).load()
        query = rows.writeStream.foreachBatch(upsert).option("checkpointLocation", str(checkpoint))
        started = query.trigger(processingTime=EVERY).start()
        while not stop.wait(0.05):
            assert started.isActive, started.exception()
        started.stop()
        return found

    def forward(self, topic: str, out: str, producer: Steady) -> list[float]:
        """Spark's own query from topic to topic with an interval trigger; how long each record took."""
        from pyspark.sql import functions as F

        rows = self._spark.readStream.format("kafka").options(**self._options(topic)).load()
        rows = rows.withColumn("r", F.from_json(F.col("value").cast("string"), SCHEMA))
        rows = rows.where("r.page is not null").selectExpr(
            "r.event_id as key",
            "to_json(struct(r.event_id, r.page, r.amount, r.at, unix_millis(timestamp) as came)) as value",
        )
        query = (
            rows.writeStream.format("kafka").option("kafka.bootstrap.servers", self._address).option("topic", out)
            .option("checkpointLocation", str(self._home / "forward-checkpoint")).trigger(processingTime=EVERY).start()
        )  # fmt: skip
        _send(producer)
        assert query.isActive, query.exception()
        query.stop()
        return self._waited(out, producer)

    def real_time(self, name: str, out: str, producer: Steady) -> list[float]:
        """Twinstream's real-time mode; how long each record took."""
        from twinstream.runtime.progress import Progress
        from twinstream.runtime.realtime import RealTimeRequest

        stop = threading.Event()
        engine = self._engine()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(engine.real_time, name, RealTimeRequest(wait_seconds=0), Progress(), stop)
            try:
                _send(producer)
                assert not running.done(), running.exception()
            finally:
                stop.set()
            running.result()
        engine.close()
        return self._waited(out, producer)

    def _waited(self, out: str, producer: Steady) -> list[float]:
        """Seconds from a record's timestamp in one topic to that in the other, the first five seconds left out."""
        from twinstream.modes.latency import messages
        from twinstream.sources.kafka.spans import Span

        waited = []
        for number in range(PARTITIONS):
            for message in messages({"bootstrap.servers": self._address}, (out, number), Span(0, 1 << 60)):
                came = json.loads(message.value())["came"] / 1000
                if came > producer.began + 5:
                    waited.append(message.timestamp()[1] / 1000 - came)
        return sorted(waited)

    def _options(self, topic: str) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": self._address,
            "subscribe": topic,
            "startingOffsets": "earliest",
            "kafka.isolation.level": "read_committed",
        }

    def _engine(self, **more):
        from twinstream.engine import Engine

        return Engine(replace(settings_of(self._home, self._address), **more), self._spark)


def _send(producer: Steady) -> None:
    """Lets a producer send all that it has to a query that was just started."""
    time.sleep(15)
    producer.start()
    producer.join()
    time.sleep(5)


def _parsed(rows, once: bool = False):
    """As people write it, where Spark parses a record for each of its fields; or so that it is parsed once."""
    from pyspark.sql import functions as F

    record = F.from_json(F.col("value").cast("string"), SCHEMA)
    return rows.select(F.inline(F.array(record))) if once else rows.select(record.alias("r")).select("r.*")
