"""A few page views written by hand: enough for lateness, dead letters and several txids, quick to drain."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.e2e.home import Home

START = datetime(2026, 1, 1, tzinfo=UTC)
EACH = 12


def event(number: int, **changes: Any) -> dict[str, Any]:
    """The n-th page view: half a minute after the one before it."""
    at = START + timedelta(seconds=30 * number)
    made = {
        "event_id": f"e{number}",
        "page": f"/{number % 3}",
        "amount": f"{number}.25",
        "at": at.isoformat().replace("+00:00", "Z"),
    }
    return made | changes


def events(file: int) -> list[dict[str, Any]]:
    return [event(file * EACH + number) for number in range(EACH)]


def write_json(path: Path, records: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def write_parquet(path: Path, records: list[dict[str, Any]]) -> None:
    """In plain pages, so that damage to one is damage to the values."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tests.truth import as_decimal, as_timestamp

    path.parent.mkdir(parents=True, exist_ok=True)
    units = as_decimal(12, 2)
    table = pa.table(
        {
            "event_id": pa.array([record["event_id"] for record in records], pa.string()),
            "page": pa.array([record["page"] for record in records], pa.string()),
            "amount": pa.array([_decimal(units(record["amount"], "", "")) for record in records], pa.decimal128(12, 2)),
            "at": pa.array([as_timestamp(record["at"], "", "") for record in records], pa.timestamp("us", tz="UTC")),
        }
    )
    pq.write_table(table, path, use_dictionary=False, compression="none", data_page_version="1.0")


def write_files(home: Home, count: int = 3) -> list[Path]:
    """Files 0.json, 1.json … of page views."""
    paths = [home.data("page_views") / f"{number}.json" for number in range(count)]
    for number, path in enumerate(paths):
        write_json(path, events(number))
    return paths


def write_parquet_files(home: Home, count: int = 3) -> list[Path]:
    """Parquet files of the same page views, each with a JSON file of the same records beside the source."""
    home.change("page_views", 'format="json"', 'format="parquet"')
    paths = [home.data("page_views") / f"{number}.parquet" for number in range(count)]
    for number, path in enumerate(paths):
        write_parquet(path, events(number))
        write_json(home.folder / "as-json" / f"{number}.json", events(number))
    return paths


def plan(home: Home, batch_records: int = EACH) -> int:
    """Plans what is there without draining it; returns how many txids."""
    engine = home.engine()
    definition = engine.definition("page_views")
    found = engine.plan(definition, engine.generation(definition, create=True), batch_records)
    engine.close()
    return len(found.txids)


def _decimal(units: int) -> Any:
    from decimal import Decimal

    return Decimal(units).scaleb(-2)
