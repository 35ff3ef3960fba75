"""One way to call the generator in tests: everything that a test does not care about has a value here."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from twinstream.generator import Generated, generate

PAGE_VIEWS = {"event_id": "string", "page": "string", "amount": "decimal(12,2)", "at": "timestamp"}
ORDERS = {
    "order_id": "string",
    "customer": "string",
    "country": "string",
    "status": "string",
    "quantity": "int",
    "price": "decimal(10,2)",
    "placed_at": "timestamp",
}

Make = Callable[..., Generated]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Generate page views into a folder of the test."""

    def call(folder: str = "events", **given: Any) -> Generated:
        defaults: dict[str, Any] = {
            "columns": PAGE_VIEWS,
            "record_id": "event_id",
            "event_time": "at",
            "events": 1_000,
            "seed": 7,
            "start": datetime(2026, 1, 1, tzinfo=UTC),
        }
        return generate(folder=tmp_path / folder, **{**defaults, **given})

    return call


@pytest.fixture
def make_orders(make: Make) -> Make:
    """Generate orders into a folder of the test."""

    def call(folder: str = "events", **given: Any) -> Generated:
        return make(folder, **{"columns": ORDERS, "record_id": "order_id", "event_time": "placed_at", **given})

    return call
