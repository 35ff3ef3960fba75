"""KafkaSource: topics whose partitions are read by exact offsets, transactions that were committed only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from twinstream.columns import parse_columns
from twinstream.errors import DefinitionError, Refused, SourceChanged, TwinstreamError
from twinstream.generator.topic import TopicWriter
from twinstream.sources.base import History, Places, Plan, Slice, is_brought_back
from twinstream.sources.files import FileSource
from twinstream.sources.kafka.broker import Broker, There
from twinstream.sources.kafka.connection import check_connection, client_options
from twinstream.sources.kafka.spans import Partition, Span, Spans, cut, from_payload, to_payload, total
from twinstream.transaction import Range

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORD_BYTES = 256
"""What a record is taken to weigh: offsets do not tell, and the rate of groups is learned in the same measure."""
NEAR = 0.1
"""Retention is near when less than this part of what the topic keeps lies between its first record and the next one."""
Payload = Mapping[str, Any]
_FIELDS = {"key": "string", "topic": "string", "partition": "int", "offset": "bigint", "timestamp": "timestamp"}


@dataclass(frozen=True)
class KafkaSource:
    """Records of one or more topics: JSON values with a schema, or as they are, for prepare to take apart."""

    topics: str | tuple[str, ...] = ()
    pattern: str = ""
    """Instead of topics: those whose whole name matches, also such that come later."""
    schema: str = ""
    """Columns of the JSON value; without it: key, value, headers, topic, partition, offset, timestamp."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """More columns beside the value's: {"id": "key", "trace": "header:trace-id", "at": "timestamp"}."""
    connection: str = "kafka_default"

    kind = "kafka"
    numbered = True

    def __post_init__(self) -> None:
        if bool(self.topics) == bool(self.pattern):
            raise DefinitionError(
                "KafkaSource needs topics or a pattern, and not both.",
                next_step='Write for example KafkaSource(topics="orders", …).',
            )
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise DefinitionError(
                f"KafkaSource(pattern={self.pattern!r}) is not a regular expression: {error}.", next_step="Correct it."
            ) from error
        check_connection("KafkaSource", self.connection)
        if self.fields and not self.schema.strip():
            raise DefinitionError(
                "KafkaSource without a schema has all parts of a record already.",
                next_step="Leave fields out, or give the schema of the JSON value.",
            )
        for name, what in self.fields.items():
            if what not in _FIELDS and not re.fullmatch(r"header:.+", what):
                raise DefinitionError(
                    f"KafkaSource(fields={{{name!r}: {what!r}}}) is not known.",
                    next_step=f"Use one of {', '.join(_FIELDS)} or header:NAME.",
                )
            if name in self.value_columns:
                raise DefinitionError(
                    f"KafkaSource has two columns named {name}: in the schema and in fields.",
                    next_step="Rename the one in fields.",
                )

    @cached_property
    def value_columns(self) -> dict[str, str]:
        """The columns of the JSON value."""
        return parse_columns(self.schema) if self.schema.strip() else {}

    @cached_property
    def columns(self) -> dict[str, str]:
        from twinstream.sources.kafka.read import RECORD

        if not self.schema.strip():
            return dict(RECORD)
        return self.value_columns | {name: _FIELDS.get(what, "string") for name, what in self.fields.items()}

    def canonical(self) -> dict[str, Any]:
        """Neither the brokers nor the topics' names change what a record means; where they lead is in the ranges."""
        return {"kind": self.kind, "columns": self.columns, "fields": dict(sorted(self.fields.items()))}

    def plan(self, places: Places, history: History, batch_records: int, enough: int) -> Plan:
        last = history.last()
        try:
            there = self._there(places)
            ids, new = self._new(there, last)
        except TwinstreamError as error:
            return Plan((), problem=error)
        records = total(new)
        if not records:
            return Plan(())
        most = max(1, enough // RECORD_BYTES // batch_records)
        pieces = -(-records // batch_records)
        ranges = tuple(_range(ids, spans) for spans in islice(cut(new, pieces), most))
        return Plan(ranges, more=len(ranges) < pieces, warnings=tuple(_warnings(there, new)))

    def reads(self, topic: str) -> bool:
        """Whether records of this topic are among what it reads."""
        named = (self.topics,) if isinstance(self.topics, str) else self.topics
        return bool(re.fullmatch(self.pattern, topic)) if self.pattern else topic in named

    def target(self, places: Places) -> TopicWriter:
        if not isinstance(self.topics, str) or not self.schema.strip():
            raise Refused(
                "Events can be generated for one topic whose values have a schema.",
                next_step="Send them by a program of your own.",
            )
        return TopicWriter(self.topics, client_options(self.connection, places.connections), self.fields)

    def stream(self, spark: SparkSession, places: Places, history: History, most: int) -> DataFrame:
        """A stream that begins behind what is planned, at most so many records at a time; only its offsets are used."""
        from twinstream.sources.kafka.read import stream_offsets

        _, new = self._new(self._there(places), history.last())
        return stream_offsets(spark, self, places, {partition: span.start for partition, span in new.items()}, most)

    def ranges_to(
        self, places: Places, history: History, ends: Mapping[str, Any], batch_records: int
    ) -> tuple[Range, ...]:
        """What lies between the last planned range and where such a stream has come."""
        ids, new = self._new(self._there(places), history.last())
        reached = {
            partition: Span(span.start, max(span.start, int(ends.get(partition[0], {}).get(str(partition[1]), 0))))
            for partition, span in new.items()
        }
        pieces = -(-total(reached) // batch_records)
        return tuple(_range(ids, spans) for spans in cut(reached, pieces)) if pieces else ()

    def starts(self, places: Places, history: History) -> tuple[dict[str, str], dict[Partition, int]]:
        """Ids of topics, and the offset behind the last planned one of each partition that is there."""
        there = self._there(places)
        _, new = self._new(there, history.last())
        return dict(there.topics), {partition: new[partition].start for partition in there.spans}

    def records(self, spark: SparkSession, places: Places, starts: Mapping[Partition, int]) -> DataFrame:
        """A stream of the records themselves from these offsets on, in the shape of `read`, of no txid."""
        from twinstream.sources.kafka.read import stream_records

        return stream_records(spark, self, places, starts)

    @staticmethod
    def ranges_of(
        last: Range | None, ids: Mapping[str, str], read: Mapping[Partition, Span], batch_records: int, more: Payload
    ) -> tuple[Range, ...]:
        """What of these spans, which somebody has read, no range has yet; `more` is said in the payload of each."""
        known_ids, known = from_payload(last.payload) if last else ({}, {})
        behind = {partition: Span(span.end, span.end) for partition, span in known.items()}
        for partition, span in read.items():
            start = max(span.start, known[partition].end) if partition in known else span.start
            behind[partition] = Span(start, max(start, span.end))
        pieces = -(-total(behind) // batch_records)
        found = (_range({**ids, **known_ids}, spans) for spans in cut(behind, pieces)) if pieces else ()
        return tuple(replace(one, payload={**one.payload, **more}) for one in found)

    def waiting(self, places: Places, history: History) -> int:
        """How many offsets no txid has."""
        return total(self._new(self._there(places), history.last())[1])

    def newest(self, places: Places, records: int) -> Spans:
        """At most so many offsets at the end of the topics, of each partition its share."""
        spans = self._there(places).spans
        whole = max(total(spans), 1)
        return {
            partition: Span(span.end - min(span.size, span.size * records // whole), span.end)
            for partition, span in spans.items()
        }

    @property
    def connections(self) -> tuple[str, ...]:
        return (self.connection,)

    @cached_property
    def brought_back(self) -> FileSource:
        """Lines of JSON with this source's columns."""
        return FileSource("", schema=", ".join(f"`{name}` {kind}" for name, kind in self.columns.items()))

    def changes(self, places: Places, ranges: Sequence[Range]) -> dict[int, SourceChanged]:
        there = self._look_at(places, ranges)
        found: dict[int, SourceChanged] = {}
        for place, one in enumerate(ranges):
            try:
                if is_brought_back(one):
                    self.brought_back.verify(places, one)
                else:
                    _require_there(one, there)
            except SourceChanged as error:
                found[place] = error
        return found

    def remaining(self, places: Places, ranges: Sequence[Range]) -> list[Range]:
        there = self._look_at(places, ranges)
        return [
            self.brought_back.remaining(places, [one])[0] if is_brought_back(one) else _left(one, there)
            for one in ranges
        ]

    def _look_at(self, places: Places, ranges: Sequence[Range]) -> There:
        """One look at the broker for all of them."""
        topics = {topic for one in ranges if not is_brought_back(one) for topic in one.payload["topics"]}
        return self._broker(places).look(topics) if topics else There({}, {})

    def read(self, spark: SparkSession, places: Places, slices: Sequence[Slice], positions: bool = False) -> DataFrame:
        from twinstream.sources.kafka.read import read_offsets

        ours = [piece for piece in slices if not is_brought_back(piece.range)]
        back = [piece for piece in slices if is_brought_back(piece.range)]
        if not back:
            return read_offsets(spark, self, places, ours, positions)
        rows = self.brought_back.read(spark, places, back, positions)
        return rows.unionByName(read_offsets(spark, self, places, ours, positions)) if ours else rows

    def _broker(self, places: Places) -> Broker:
        return _broker(self.connection, tuple(sorted(client_options(self.connection, places.connections).items())))

    def _there(self, places: Places) -> There:
        broker = self._broker(places)
        named = (self.topics,) if isinstance(self.topics, str) else self.topics
        return broker.look(broker.names(self.pattern) if self.pattern else named)

    def _new(self, there: There, last: Range | None) -> tuple[dict[str, str], dict[Partition, Span]]:
        """What lies behind the last planned offsets; a partition that is new starts with what it has."""
        known_ids, known = from_payload(last.payload) if last else ({}, {})
        _require_same_topics(known_ids, there)
        new: dict[Partition, Span] = {}
        for partition, span in there.spans.items():
            start = known[partition].end if partition in known else span.start
            if start < span.start:
                raise _overtaken(partition, start, span.start)
            if start > span.end:
                raise SourceChanged(
                    f"{_name(partition)} ends at offset {span.end}, but offsets up to {start} were planned.",
                    untouched="Nothing was planned from it.",
                    next_step="The broker lost records: bring them back, or begin anew with `twinstream replay`.",
                )
            new[partition] = Span(start, span.end)
        return {**known_ids, **there.topics}, {**{p: Span(s.end, s.end) for p, s in known.items()}, **new}


@cache
def _broker(connection: str, options: tuple[tuple[str, str], ...]) -> Broker:
    return Broker(connection, dict(options))


def _range(ids: Mapping[str, str], spans: Mapping[Partition, Span]) -> Range:
    records = total(spans)
    return Range(payload=to_payload(ids, spans), records=records, size=records * RECORD_BYTES, exact=False)


def _overlap(span: Span, there: Span) -> Span:
    start = min(max(span.start, there.start), span.end)
    return Span(start, max(start, min(span.end, there.end)))


def _require_same_topics(ids: Mapping[str, str], there: There) -> None:
    for topic, known in ids.items():
        if topic in there.topics and there.topics[topic] != known:
            raise SourceChanged(
                f"The topic {topic} was deleted and made anew: its offsets do not mean the same records any more.",
                untouched="Nothing was read from the new one.",
                next_step="`twinstream replay` builds a new generation from what the topic holds now.",
            )


def _left(range: Range, there: There) -> Range:
    ids, spans = from_payload(range.payload)
    left = {
        partition: _overlap(span, there.spans[partition])
        for partition, span in spans.items()
        if partition in there.spans and ids[partition[0]] == there.topics[partition[0]]
    }
    return replace(range, payload=to_payload(ids, left))


def _require_there(range: Range, there: There) -> None:
    ids, spans = from_payload(range.payload)
    _require_same_topics(ids, there)
    for partition, span in spans.items():
        if span.size:
            _require_offsets(partition, span, there.spans.get(partition))


def _require_offsets(partition: Partition, span: Span, there: Span | None) -> None:
    if there is None:
        raise SourceChanged(
            f"{_name(partition)} is gone.",
            untouched="No txid was committed without its records.",
            next_step="Bring the topic back, or `twinstream discard` the txid with a reason.",
        )
    if there.start > span.start:
        raise _overtaken(partition, span.start, there.start)
    if there.end < span.end:
        raise SourceChanged(
            f"{_name(partition)} ends at offset {there.end} now; offsets up to {span.end} were planned.",
            untouched="No txid was committed without its records.",
            next_step="Bring the broker's records back, or `twinstream discard` the txid with a reason.",
        )


def _warnings(there: There, new: Mapping[Partition, Span]) -> Iterator[str]:
    """Partitions whose retention has deleted nearly everything up to what is to be read next."""
    for partition, span in sorted(new.items()):
        found = there.spans.get(partition)
        if found and found.start and span.size and span.start - found.start < NEAR * found.size:
            yield (
                f"{_name(partition)} will soon delete what was not planned: its retention has come within "
                f"{span.start - found.start} of the next offset."
            )


def _overtaken(partition: Partition, wanted: int, first: int) -> SourceChanged:
    return SourceChanged(
        f"{_name(partition)} has deleted offsets {wanted} to {first - 1} before they were read: "
        "its retention is shorter than the lag.",
        untouched="Nothing behind the gap was planned or committed.",
        next_step="If they are lost for good, `twinstream replay` begins anew with what is left; then give the topic a "
        "longer retention.",
    )


def _name(partition: Partition) -> str:
    return f"Partition {partition[1]} of topic {partition[0]}"
