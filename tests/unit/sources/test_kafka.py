"""KafkaSource without a broker: offsets as numbers, connections as options, definitions that are refused."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstream import KafkaSource
from twinstream.errors import DefinitionError, Refused, SettingsError
from twinstream.settings import Settings
from twinstream.sources.base import Places
from twinstream.sources.kafka.connection import client_options, spark_options
from twinstream.sources.kafka.spans import Span, cut, from_payload, to_payload, total

PARTITIONS = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 5))
SPANS = st.builds(lambda start, size: Span(start, start + size), st.integers(0, 1 << 60), st.integers(0, 1_000))


@given(st.dictionaries(PARTITIONS, SPANS, min_size=1), st.integers(1, 50))
def test_pieces_follow_each_other_without_gaps_and_are_about_equal(spans, pieces):
    found = list(cut(spans, pieces))
    assert len(found) == pieces
    for partition, span in spans.items():
        edges = [(piece[partition].start, piece[partition].end) for piece in found]
        assert edges[0][0] == span.start
        assert edges[-1][1] == span.end
        assert all(one[1] == two[0] for one, two in pairwise(edges))
        sizes = [end - start for start, end in edges]
        assert max(sizes) - min(sizes) <= 1
    assert sum(map(total, found)) == total(spans)


@given(st.dictionaries(PARTITIONS, SPANS))
def test_a_payload_says_all_that_a_range_is(spans):
    ids = {topic: f"id of {topic}" for topic, _ in spans}
    assert from_payload(json.loads(json.dumps(to_payload(ids, spans)))) == (ids, spans)


def test_an_address_is_all_that_a_connection_needs():
    known = Settings.from_env({"TWINSTREAM_KAFKA_DEFAULT": "one:9092", "TWINSTREAM_KAFKA_EU": "two:9092"}).connections
    assert client_options("kafka_default", known) == {"bootstrap.servers": "one:9092"}
    assert spark_options("kafka_eu", known) == {"kafka.bootstrap.servers": "two:9092"}


def test_logins_and_certificates_reach_spark_in_its_own_words(tmp_path: Path):
    (tmp_path / "ca.pem").write_text("the authority")
    given_options = {
        "bootstrap.servers": "one:9093", "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me", "sasl.password": 'a"b\\c', "ssl.ca.location": str(tmp_path / "ca.pem"),
        "group.id": "of no account",
    }  # fmt: skip
    found = spark_options("kafka_x", {"kafka_x": json.dumps(given_options)})
    assert found == {
        "kafka.bootstrap.servers": "one:9093",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.ssl.truststore.certificates": "the authority",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="me" password="a\\"b\\\\c";',
    }


def test_settings_never_show_what_a_connection_holds():
    known = Settings.from_env({"TWINSTREAM_KAFKA_DEFAULT": '{"sasl.password": "canary"}'})
    assert "canary" not in repr(known)
    assert "canary" not in repr(known.places("p"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not set"),
        ("{broken", "is not a JSON object"),
        ('{"bootstrap.servers": "x", "sasl.pasword": "canary"}', "sasl.pasword"),
        ('{"sasl.password": "canary"}', "does not name the brokers"),
        ('{"bootstrap.servers": "x", "sasl.mechanism": "GSSAPI"}', "GSSAPI"),
        ('{"bootstrap.servers": "x", "ssl.ca.location": "/no/such/file"}', "/no/such/file"),
    ],
)
def test_a_connection_that_cannot_be_used_is_told(text, says):
    with pytest.raises(SettingsError, match=says) as error:
        spark_options("kafka_default", {"kafka_default": text})
    assert "canary" not in str(error.value)
    assert error.value.next_step


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "topics or a pattern"),
        ({"topics": "a", "pattern": "b"}, "topics or a pattern"),
        ({"pattern": "("}, "not a regular expression"),
        ({"topics": "a", "connection": "Kafka default"}, "connection"),
        ({"topics": "a", "fields": {"id": "key"}}, "without a schema"),
        ({"topics": "a", "schema": "x string", "fields": {"id": "value"}}, "is not known"),
        ({"topics": "a", "schema": "id string", "fields": {"id": "key"}}, "two columns named id"),
    ],
)
def test_a_source_that_makes_no_sense_is_refused(options, says):
    with pytest.raises(DefinitionError, match=says):
        KafkaSource(**options)


def test_columns_are_the_values_and_the_fields():
    source = KafkaSource(topics="a", schema="x string", fields={"id": "key", "trace": "header:t", "at": "timestamp"})
    assert source.columns == {"x": "string", "id": "string", "trace": "string", "at": "timestamp"}
    assert "value" in KafkaSource(topics="a").columns


def test_where_the_brokers_are_does_not_change_what_a_record_means():
    one = KafkaSource(topics="a", schema="x string", fields={"id": "key"})
    two = KafkaSource(pattern="a.*", schema="x string", fields={"id": "key"}, connection="kafka_eu")
    assert one.canonical() == two.canonical()
    assert one.canonical() != KafkaSource(topics="a", schema="x string", fields={"id": "header:id"}).canonical()


def test_events_are_generated_for_one_topic_with_a_schema():
    with pytest.raises(Refused, match="one topic"):
        KafkaSource(pattern="a.*", schema="x string").target(Places(Path()))
