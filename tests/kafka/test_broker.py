"""A broker that is restarted or gone while its topic is streamed: nothing is lost, nothing is read twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bin.lib.local.kafka import Kafka
from bin.lib.local.processes import Started, stop
from tests.conftest import ROOT
from tests.e2e.home import assert_true
from tests.kafka.home import KafkaHome
from tests.kafka.streaming import NOW, Streaming, counted, planned, stream, until
from tests.kafka.test_drain import events
from tests.kafka.test_plan import everything, offsets
from tests.kafka.topic import Topic
from twinstream.errors import SourceUnreadable
from twinstream.runtime.progress import Progress
from twinstream.sources.kafka import broker as asking


class Mortal:
    """A broker that can be killed and started again, with the same address and the same data."""

    def __init__(self, folder: Path) -> None:
        self.kafka = Kafka(folder, ROOT / ".kafka")
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        self._process = self.kafka.start()
        self.kafka.wait(self._process)

    def kill(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            stop(Started.of("kafka", self._process))


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mortal]:
    broker = Mortal(tmp_path_factory.mktemp("mortal"))
    yield broker
    broker.end()


@pytest.fixture
def topic(mortal: Mortal) -> Topic:
    return Topic(mortal.kafka.address).make()


@pytest.fixture
def home(folder: Path, spark: Any, topic: Topic) -> KafkaHome:
    return KafkaHome.on(folder, spark, topic)


def test_restarted_in_the_middle_the_query_goes_on_by_itself(home: KafkaHome, topic: Topic, mortal: Mortal) -> None:
    topic.send(events(random.Random(1), 40))
    with Streaming(home) as running:
        until(lambda: counted(home) == 40)
        mortal.kill()
        mortal.start()
        topic.send(events(random.Random(2), 40))
        until(lambda: counted(home) == 80)
    assert running.error is None
    assert offsets(planned(home)) == everything(topic, *(topic._sent[number] + 1 for number in range(3)))
    assert_true(home, "page_views", "side")


def test_gone_after_planning_it_ends_by_name_and_the_next_run_goes_on(
    home: KafkaHome, topic: Topic, mortal: Mortal, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killing(Progress):
        def planned(self, txids: int, records: int) -> None:
            mortal.kill()

    monkeypatch.setattr(asking, "SECONDS", 2.0)
    topic.send(events(random.Random(3), 40))
    with pytest.raises(SourceUnreadable, match="do not answer"):
        stream(home, NOW, progress=Killing())
    assert counted(home) == 0
    mortal.start()
    monkeypatch.setattr(asking, "SECONDS", 15.0)
    topic.send(events(random.Random(4), 20))
    stream(home)
    assert counted(home) == 60
    assert_true(home, "page_views", "side")
