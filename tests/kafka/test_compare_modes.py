"""Modes compared on a real broker: the same result from each, honest figures, and nothing left behind."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from tests.e2e.commands import commands_on
from tests.e2e.home import Home
from tests.kafka.home import KafkaHome
from tests.kafka.streaming import until
from tests.kafka.test_drain import events
from tests.kafka.topic import Topic
from twinstream.modes import latency
from twinstream.modes.latency import Visible, latencies
from twinstream.modes.result import Compared, Measured
from twinstream.sources.kafka.spans import Span


def test_every_mode_gives_the_same_and_the_pipeline_is_not_touched(
    folder: Path, spark: Any, topic: Topic, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = KafkaHome.on(folder, spark, topic)
    topic.send([*events(random.Random(1), 240), *["broken"] * 10])
    commands = commands_on(home, monkeypatch, capsys)
    monkeypatch.setenv("TWINSTREAM_KAFKA_DEFAULT", topic.address)
    said = commands.good(
        "compare-modes", "page_views", "--records", "200", "--seconds", "3", "--no-kill", "--json"
    ).data
    assert said["same"] is True
    assert 190 <= said["records"] <= 200
    micro, continuous = said["modes"]
    assert (micro["mode"], continuous["mode"]) == ("micro-batch", "continuous")
    assert micro["digest"] == continuous["digest"]
    for one in (micro, continuous):
        assert 0 < one["p50"] <= one["p99"] < 60
        assert all(one[name] > 0 for name in ("records_per_second", "cpu_per_million"))
    assert micro["p99"] > 3, "a record that came first waits for all others before a drain begins"
    assert said["advice"].startswith("Use ")
    page = Path(said["page"])
    assert said["advice"] in page.read_text().replace("&#39;", "'")
    assert Compared.from_dict(json.loads(page.with_suffix(".json").read_text())).to_dict() == {
        name: value for name, value in said.items() if name != "page"
    }
    assert home.engine().ledger.generations.current("page_views") is None
    assert list((folder / "modes").iterdir()) == []
    admin = AdminClient({"bootstrap.servers": topic.address})
    until(lambda: not any(name.startswith("twinstream-modes") for name in admin.list_topics(timeout=10).topics), 30)


@pytest.mark.long
def test_a_killed_runner_is_followed_by_one_that_gives_the_same(
    folder: Path, spark: Any, topic: Topic, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = KafkaHome.on(folder, spark, topic)
    topic.send(events(random.Random(2), 100))
    commands = commands_on(home, monkeypatch, capsys)
    monkeypatch.setenv("TWINSTREAM_KAFKA_DEFAULT", topic.address)
    monkeypatch.setenv("TWINSTREAM_MASTER", "local[1]")
    said = commands.good("compare-modes", "page_views", "--seconds", "1", "--json").data
    assert said["same"] is True
    assert all(0 < one["recovery"] < 120 for one in said["modes"])


def test_files_have_one_mode(
    folder: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Home.make(folder, spark)
    home.generate("page_views", 300, events_per_file=100)
    commands = commands_on(home, monkeypatch, capsys)
    said = commands.good("compare-modes", "page_views", "--no-kill")
    assert "page_views reads files, and continuous mode streams topics." in said.out
    assert said.out.splitlines()[-1].startswith("Use micro-batch: ")
    assert home.engine().ledger.generations.current("page_views") is None


def test_an_empty_topic_is_told(
    folder: Path, spark: Any, topic: Topic, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = KafkaHome.on(folder, spark, topic)
    commands = commands_on(home, monkeypatch, capsys)
    monkeypatch.setenv("TWINSTREAM_KAFKA_DEFAULT", topic.address)
    said = commands.bad("compare-modes", "page_views", kind="Refused", code=1)
    assert "hold no records" in said["what"]


def test_latency_is_from_the_records_own_time_to_the_commit_that_holds_it(topic: Topic) -> None:
    producer = topic.producer()
    for number in range(4):
        producer.produce(topic.name, value="x", partition=0, timestamp=1_700_000_000_000 + 1000 * number)
    producer.flush(30)
    visible = [
        Visible({(topic.name, 0): Span(0, 1)}, 1_700_000_002.0),
        Visible({(topic.name, 0): Span(1, 4), (topic.name, 1): Span(0, 0)}, 1_700_000_004.5),
    ]
    assert latencies({"bootstrap.servers": topic.address}, visible) == [1.5, 2.0, 2.5, 3.5]
    assert latency.quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 3.0
    assert latency.quantile([1.0], 0.99) == 1.0


def compared(*modes: Measured, records: int = 1000, seconds: float = 10.0) -> Compared:
    return Compared("page_views", "2026-03-01", records, seconds, "1 second", modes)


def measured(mode: str, p99: float, cpu: float, pace: float = 1000.0, digest: str = "same") -> Measured:
    return Measured(mode, None, p99 / 2, p99, pace, cpu, 1.0, digest)


def test_the_advice_follows_from_the_figures() -> None:
    micro, quick = measured("micro-batch", 20.0, 10.0), measured("continuous", 2.0, 14.0)
    assert compared(micro, quick).advice == (
        "Use continuous: 99 % of the records are visible after 2.0 s, and it costs 1.4 × the CPU of the cheapest mode."
    )
    assert compared(micro, measured("continuous", 2.0, 30.0)).advice == (
        "Use micro-batch, unless results must be younger than 20.0 s: continuous shows them after 2.0 s, "
        "for 3.0 × the CPU."
    )
    assert compared(micro, measured("continuous", 2.0, 10.0, pace=50.0)).advice == (
        "Use micro-batch: at 100 records/s nothing else keeps up."
    )
    assert "different results" in compared(micro, measured("continuous", 2.0, 10.0, digest="other")).advice
    assert compared(micro, Measured("continuous", "it cannot be.")).advice == "Use micro-batch: it cannot be."
