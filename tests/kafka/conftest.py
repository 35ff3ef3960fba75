"""One broker for all tests here, on free loopback ports, gone with the run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bin.lib.local.kafka import Kafka
from tests.kafka.topic import Topic
from tests.servers.kafka import kafka_broker

RIGHTS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
"""Everybody may do everything, but for what a test forbids."""


@pytest.fixture(scope="package")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with kafka_broker(tmp_path_factory.mktemp("kafka"), RIGHTS) as kafka:
        yield kafka


@pytest.fixture
def topic(broker: Kafka) -> Topic:
    """A topic of three partitions."""
    return Topic(broker.address).make()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home"
