"""One broker for all tests here, on free loopback ports, gone with the run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bin.lib.local.kafka import Kafka
from bin.lib.local.processes import Started, stop
from tests.conftest import ROOT
from tests.kafka.topic import Topic

JARS = ROOT / ".kafka"


@pytest.fixture(scope="package")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    kafka = Kafka(tmp_path_factory.mktemp("kafka"), JARS)
    process = kafka.start()
    started = Started.of("kafka", process)
    try:
        kafka.wait(process)
        yield kafka
    finally:
        stop(started)


@pytest.fixture
def topic(broker: Kafka) -> Topic:
    """A topic of three partitions."""
    return Topic(broker.address).make()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home"
