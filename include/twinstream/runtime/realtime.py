"""Real-time mode: one query from topic to topic that answers in milliseconds, outside of the transactions.

A row is sent as soon as its record is there, without a range, a txid or a commit; so the mode is at-least-once by
itself. It holds the pipeline's lease, and what it has served is brought to the books afterwards (`served.py`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from twinstream.durations import parse_duration
from twinstream.errors import ProcessingFailed, Refused, SettingsError, TwinstreamError
from twinstream.guarantees import REAL_TIME
from twinstream.ledger import Generation, Ledger, Run
from twinstream.operators.base import KEPT
from twinstream.pipeline import Definition, Pipeline
from twinstream.runtime.classify import classified
from twinstream.runtime.drain import Drained, Runner
from twinstream.runtime.explain import one_line
from twinstream.runtime.plan import LedgerHistory
from twinstream.runtime.progress import Progress
from twinstream.runtime.query import Facts, logged, watch
from twinstream.runtime.served import KIND, Checkpoint, is_all_served, plan_served
from twinstream.runtime.stopping import Stops
from twinstream.sinks.kafka import KafkaSink
from twinstream.sinks.topic import TopicSender
from twinstream.sources.base import Places
from twinstream.sources.kafka.connection import spark_options
from twinstream.sources.kafka.source import KafkaSource

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True)
class RealTimeRequest:
    """What a user asks of a real-time run."""

    every: str = "5 seconds"
    """How often it notes how far it is; rows do not wait for that."""
    seconds: float | None = None
    """End after so long."""
    wait_seconds: float = 90.0
    """How long to stand by while another runner holds the pipeline."""
    context: Mapping[str, str] = field(default_factory=dict)


def require_served(pipeline: Pipeline) -> tuple[KafkaSource, KafkaSink]:
    """Source and sink of a pipeline that real-time mode can serve; refuses any other with what works instead."""
    source, sink = pipeline.source, pipeline.sink
    if not isinstance(source, KafkaSource) or not isinstance(sink, KafkaSink):
        raise _refused(pipeline, f"it goes from {source.kind} to {sink.kind}, and not from topic to topic")
    if pipeline.watermark is not None and pipeline.watermark.late != "keep":
        raise _refused(pipeline, f"late={pipeline.watermark.late!r} asks for a watermark, which it does not have")
    if pipeline.gate is not None:
        raise _refused(pipeline, "its gate looks at rows before they are committed, and here they are sent at once")
    if pipeline.deduplicate is not None:
        raise _refused(pipeline, "deduplicating needs what was committed before")
    return source, sink


def _refused(pipeline: Pipeline, why: str) -> Refused:
    if isinstance(pipeline.source, KafkaSource):
        instead = f'`twinstream continuous {pipeline.name} --every "1 second"` serves it as it is.'
    else:
        instead = f"`twinstream drain {pipeline.name}` takes what is new."
    return Refused(f"Real-time mode cannot serve {pipeline.name}: {why}.", next_step=instead)


@dataclass
class RealTime:
    """One run of a pipeline in real-time mode."""

    spark: Callable[[], SparkSession]
    definition: Definition
    columns: Mapping[str, str]
    ledger: Ledger
    generation: Generation
    places: Places
    progress: Progress
    request: RealTimeRequest
    stop: threading.Event = field(default_factory=threading.Event)
    """Set by whoever wants it to end."""

    def __post_init__(self) -> None:
        parse_duration(self.request.every, "--real-time")
        self._source, self._sink = require_served(self.definition.pipeline)
        self._checkpoint = Checkpoint.of(self.places, self.generation)
        self._stops = Stops(self.ledger, self.generation.id)
        self._last: Facts = {"real_time": self.request.every}

    def run(self, runner: Runner) -> Drained:
        """Serves until it is asked to stop; what it served by then is planned."""
        with (
            runner.holding() as drain_planned,
            logged(self.ledger, self.generation, KIND, self.request.context, self._end) as run,
        ):
            plan_served(self.ledger, self.definition, self.generation.id, self.places)
            if not is_all_served(self.ledger, self.ledger.generations.get(self.generation.id)):
                drain_planned()
            self.progress.note(f"real-time mode is {REAL_TIME.delivery.text}: {REAL_TIME.reason}")
            self._serve(run, runner)
            runner.check()
            plan_served(self.ledger, self.definition, self.generation.id, self.places)
            self._checkpoint.forget()
        return runner.drained

    def _serve(self, run: Run, runner: Runner) -> None:
        TopicSender(self._sink.topic, self._sink.connection, self.places.connections).require()
        last = LedgerHistory(self.ledger, self.ledger.generations.get(self.generation.id))
        topics, starts = self._source.starts(self.places, last)
        self._require_slots(len(starts))
        self._checkpoint.begin(topics, starts)
        rows = self._messages(self._source.records(self.spark(), self.places, starts))
        trigger: Any = {"realTime": self.request.every}
        writer = rows.writeStream.format("kafka").outputMode("update").trigger(**trigger)
        options = {
            **spark_options(self._sink.connection, self.places.connections),
            "topic": self._sink.topic,
            "checkpointLocation": str(self._checkpoint.query),
        }
        try:
            query = writer.options(**options).start()
        except Exception as error:
            if "REAL_TIME_MODE_TRIGGER_INTERVAL" in str(error):
                raise SettingsError(
                    f"--real-time {self.request.every!r} is more often than Spark notes how far it is.",
                    next_step='Use --real-time "5 seconds": rows do not wait for it.',
                ) from error
            raise self._ended(error) from error
        try:
            self._watch(run, runner, query)
        finally:
            query.stop()
        if (failed := query.exception()) is not None:
            raise self._ended(failed)

    def _messages(self, records: DataFrame) -> DataFrame:
        """What is sent: the prepared rows of records that are neither dead nor filtered."""
        from pyspark.sql import functions as F

        pipeline = self.definition.pipeline
        rows = self.definition.prepared.apply(classified(records, pipeline)).where(F.col(KEPT))
        named = {"pipeline": F.lit(pipeline.name), "generation": F.lit(self.generation.name)}
        if self.definition.prepared.one_to_one:
            named["id"] = F.concat(F.lit(f"{self.generation.name}:"), F.col("_file"))
        return rows.select(*self._sink.message(pipeline, self.columns), _headers(named))

    def _require_slots(self, partitions: int) -> None:
        """Every partition has a task of its own that never ends: with fewer slots some would never be read."""
        slots = self.spark().sparkContext.defaultParallelism
        if slots < partitions:
            raise Refused(
                f"Real-time mode reads every partition by a task of its own: the source has {partitions}, "
                f"and Spark has room for {slots} tasks.",
                next_step=f"Give it more, for example TWINSTREAM_MASTER=local[{partitions + 1}].",
            )

    def _watch(self, run: Run, runner: Runner, query: StreamingQuery) -> None:
        deadline = None if self.request.seconds is None else time.monotonic() + self.request.seconds

        def is_over() -> bool:
            if self.stop.wait(0.1):
                return True
            runner.check()
            if self._stops.asked():
                self.progress.note(f"{self.definition.name} was asked to stop: {self._stops.reason}")
                return True
            return deadline is not None and time.monotonic() >= deadline

        def facts() -> Facts:
            self._last = self._facts(query)
            return self._last

        watch(self.ledger, run, query, self.progress, is_over, facts)
        self._wait_for_batch(runner, query)

    def _wait_for_batch(self, runner: Runner, query: StreamingQuery) -> None:
        """Ends right behind a checkpoint: what was sent after it would be sent again."""
        before = self._checkpoint.batches()
        deadline = time.monotonic() + 3 * parse_duration(self.request.every, "--real-time") / 1_000_000 + 5
        while query.isActive and self._checkpoint.batches() == before and time.monotonic() < deadline:
            runner.check()
            time.sleep(0.02)

    def _ended(self, error: BaseException) -> TwinstreamError:
        return ProcessingFailed(
            f"The real-time query of {self.definition.name} ended: {one_line(error)}",
            untouched="What it sent stays sent; what it had not noted as served is sent again.",
            next_step="Mend the cause, then start it again.",
        )

    def _frontier(self) -> int:
        return self.ledger.generations.get(self.generation.id).frontier

    def _end(self) -> Facts:
        return self._last | {"frontier": self._frontier()}

    def _facts(self, query: StreamingQuery) -> Facts:
        """What a page or a supervisor wants to know."""
        found: Facts = {"frontier": self._frontier(), "real_time": self.request.every}
        last: Any = query.lastProgress
        if last:
            metrics = [source["metrics"] or {} for source in last["sources"]]
            found |= {
                "batch": last["batchId"],
                "records_per_second": last["processedRowsPerSecond"],
                "behind": max((float(one.get("maxOffsetsBehindLatest", 0)) for one in metrics), default=0.0),
                "seconds": last["batchDuration"] / 1000,
            }
        return found


def _headers(named: Mapping[str, Column]) -> Column:
    from pyspark.sql import functions as F

    return F.array(
        *(
            F.struct(F.lit(f"twinstream-{name}").alias("key"), value.cast("binary").alias("value"))
            for name, value in named.items()
        )
    ).alias("headers")
