"""Every poison record is a dead letter, no good one is, and every way of being broken occurs."""

import json
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from tests.truth import truth_orders, truth_page_views


def ranges(generated):
    return [{"txid": 1, "files": generated.files, "batch_time": "2026-01-02T00:00:00Z"}]


@pytest.mark.parametrize("seed", range(5))
def test_the_truth_finds_exactly_the_poison_of_page_views(make, seed):
    generated = make(events=5_000, poison=0.2, duplicates=0.05, late=0.05, seed=seed)
    assert truth_page_views(ranges(generated), "side").per_txid[1]["dead"] == generated.poison


@pytest.mark.parametrize("seed", range(5))
def test_the_truth_finds_exactly_the_poison_of_orders(make_orders, seed):
    generated = make_orders(events=5_000, poison=0.2, duplicates=0.05, late=0.05, seed=seed)
    assert truth_orders(ranges(generated), "side").per_txid[1]["dead"] == generated.poison


def test_every_way_occurs(make):
    generated = make(events=1_000, poison=1)
    assert generated.poison == 1_000
    lines = [line for path in generated.files for line in path.read_text(encoding="utf-8").splitlines()]
    objects = []
    for line in lines:
        try:
            objects.append(json.loads(line, parse_float=Decimal))
        except ValueError:
            continue
    broken = [line for line in lines if not line.endswith("}")]
    amounts = [record.get("amount") for record in objects]
    assert len(lines) == 1_000
    assert all(line.strip() for line in lines)
    assert any(line.startswith("{") for line in broken)
    assert any(not line.startswith("{") for line in broken)
    for name in ("event_id", "at"):
        assert any(name not in record for record in objects)
        assert any(name in record and record[name] is None for record in objects)
    assert any(isinstance(amount, Decimal) and amount.as_tuple().exponent == -3 for amount in amounts)
    assert any(type(amount) is int and amount >= 10**10 for amount in amounts)
    assert any(isinstance(amount, dict) for amount in amounts)
    times = [record["at"] for record in objects if isinstance(record.get("at"), str) and record["at"][0] == "2"]
    assert max(map(datetime.fromisoformat, times)) - min(map(datetime.fromisoformat, times)) > timedelta(days=400)


def test_columns_that_are_all_text_still_have_poison(make):
    columns = {"id": "string", "at": "string", "note": "string"}
    generated = make(columns=columns, record_id="id", events=500, poison=1)
    assert generated.poison == 500


def test_parquet_has_the_poison_that_it_can_express(make):
    import pyarrow.parquet as pq

    generated = make(events=2_000, poison=0.3, format="parquet")
    rows = [row for path in generated.files for row in pq.read_table(path).to_pylist()]
    no_id = sum(row["event_id"] is None for row in rows)
    no_time = sum(row["at"] is None for row in rows)
    ahead = sum(row["at"] is not None and row["at"].year > 2100 for row in rows)
    assert no_id + no_time + ahead == generated.poison
    assert min(no_id, no_time, ahead) > 100
