"""KafkaSink without a broker: what it delivers, what is refused, and what real-time mode cannot serve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from twinstream import Aggregate, Append, DeltaSink, FileSource, KafkaSink, KafkaSource, Pipeline, Watermark, count
from twinstream.errors import DefinitionError, Refused
from twinstream.guarantees import REAL_TIME, Delivery
from twinstream.pipeline import Definition, check
from twinstream.runtime.realtime import require_served
from twinstream.runtime.served import Checkpoint
from twinstream.sources.kafka.spans import Span, from_payload, to_payload
from twinstream.transaction import Range

SCHEMA = "id string, page string, tags array<string>, at timestamp"


def pipeline(**changes: Any) -> Pipeline:
    given: dict[str, Any] = {
        "name": "clicks", "source": KafkaSource(topics="in", schema=SCHEMA), "record_id": "id", "event_time": "at",
        "operator": Append(), "sink": KafkaSink("out"), "delivery": "at-least-once",
    }  # fmt: skip
    return Pipeline(**given | changes)


def checked(**changes: Any) -> Definition:
    return check(pipeline(**changes), Path("clicks.py"))


def test_a_topic_is_at_least_once_by_itself_and_the_reason_says_how_to_get_more():
    guarantee = checked().guarantee
    assert (guarantee.delivery, guarantee.weakest.part) == (Delivery.AT_LEAST_ONCE, "sink")
    assert "Deduplicate where Twinstream reads" in guarantee.weakest.reason
    assert "txid and sequence" in guarantee.weakest.reason
    assert checked(sink=DeltaSink("tables/x")).guarantee.delivery is Delivery.EXACTLY_ONCE
    assert (REAL_TIME.part, REAL_TIME.delivery) == ("mode", Delivery.AT_LEAST_ONCE)


def test_more_than_a_topic_delivers_is_refused_with_what_comes_nearest():
    with pytest.raises(
        DefinitionError, match="asks for exactly-once, but its sink delivers only at-least-once"
    ) as error:
        checked(delivery="exactly-once")
    assert error.value.next_step == (
        "Ask for delivery='at-least-once' and deduplicate where the topic is read; "
        "DeltaSink delivers exactly-once by itself."
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"operator": Aggregate(by=["page"], measures={"n": count()})}, "takes nothing back"),
        ({"sink": KafkaSink("in")}, "would read what it writes"),
        ({"source": KafkaSource(pattern="ou.*", schema=SCHEMA)}, "would read what it writes"),
        ({"prepare": "select page, at from events"}, "the key of KafkaSink, 'id', is no column"),
        ({"sink": KafkaSink("out", key="pgae")}, "the key of KafkaSink, 'pgae', is no column"),
        ({"sink": KafkaSink("out", key="tags")}, "is array<string>"),
    ],
)
def test_what_cannot_be_produced_is_refused(changes, says):
    with pytest.raises(DefinitionError, match=says) as error:
        checked(**changes)
    assert error.value.next_step


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"topic": "a b"}, "cannot be a topic's name"),
        ({"topic": ""}, "cannot be a topic's name"),
        ({"topic": "a", "connection": "mine"}, "cannot be a connection's name"),
        ({"topic": "a", "retain": "long"}, "not a duration"),
    ],
)
def test_a_sink_that_makes_no_sense_is_refused(options, says):
    with pytest.raises(DefinitionError, match=says):
        KafkaSink(**options)


def test_its_table_is_named_after_the_pipeline_and_both_connections_are_known():
    made = pipeline(sink=KafkaSink("out", connection="kafka_eu"))
    assert made.table == "tables/clicks"
    assert made.connections == ("kafka_default", "kafka_eu")
    assert pipeline(sink=DeltaSink("tables/x")).table == "tables/x"


@pytest.mark.parametrize(
    ("changes", "says", "instead"),
    [
        ({"sink": DeltaSink("x")}, "from kafka to delta", "--every"),
        ({"source": FileSource("x", schema=SCHEMA)}, "from files to kafka", "twinstream drain clicks"),
        ({"watermark": Watermark(delay="1 minute", late="side")}, "late='side'", "--every"),
        ({"watermark": Watermark(delay="1 minute", late="drop")}, "late='drop'", "--every"),
        ({"gate": lambda rows: None}, "its gate", "--every"),
    ],
)
def test_what_real_time_mode_cannot_serve_is_refused_with_what_can(changes, says, instead):
    with pytest.raises(Refused, match=says) as error:
        require_served(pipeline(**changes))
    assert instead in error.value.next_step


def test_what_real_time_mode_can_serve_is_not_refused():
    made = pipeline(watermark=Watermark(delay="1 minute", max_future="1 hour"))
    assert require_served(made) == (made.source, made.sink)


def test_what_was_served_is_what_lies_behind_the_last_range(tmp_path: Path):
    last = Range(to_payload({"in": "x"}, {("in", 0): Span(0, 10), ("in", 1): Span(0, 5)}), 15, 1)
    served = {("in", 0): Span(3, 31), ("in", 1): Span(2, 4), ("in", 2): Span(0, 2)}
    ranges = KafkaSource.ranges_of(last, {"in": "x"}, served, 10, {"served": "real-time"})
    assert [one.payload["served"] for one in ranges] == ["real-time"] * 3
    spans = [from_payload(one.payload)[1] for one in ranges]
    assert (spans[0]["in", 0].start, spans[-1]["in", 0].end) == (10, 31)
    assert {one["in", 1] for one in spans} == {Span(5, 5)}
    assert (spans[0]["in", 2].start, spans[-1]["in", 2].end) == (0, 2)
    assert KafkaSource.ranges_of(ranges[-1], {"in": "x"}, served, 10, {}) == ()


def test_a_checkpoint_counts_only_what_is_noted_as_planned_and_done(tmp_path: Path):
    made = Checkpoint(tmp_path / "c", "clicks", "g1-a")
    assert made.served() == ({}, {})
    made.begin({"in": "x"}, {("in", 0): 7})
    assert made.served() == ({"in": "x"}, {})
    for kind, batches in (("offsets", (0, 1)), ("commits", (0,))):
        (made.query / kind).mkdir(parents=True)
        for batch in batches:
            ends = f'{{"in": {{"0": {20 + batch}, "1": 3}}, "other": {{"0": 9}}}}'
            (made.query / kind / str(batch)).write_text(f"v1\n{{}}\n{ends}")
    assert made.batches() == 1
    assert made.served() == ({"in": "x"}, {("in", 0): Span(7, 20), ("in", 1): Span(0, 3)})
