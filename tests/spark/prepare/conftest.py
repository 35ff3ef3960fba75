from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from decimal import Decimal

import pytest

# Python functions run in workers, which must be of this environment.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

SCHEMA = (
    "_txid bigint, _hash bigint, _record_id string, _batch_time timestamp, _reason string, "
    "event_id string, page string, amount decimal(12,2), n int, at timestamp, "
    "items array<struct<sku:string,qty:int>>, tags array<string>, m map<string,int>, s struct<a:int,b:struct<c:date>>"
)
BATCH_TIME = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)


def record(event_id, page="home", amount="1.50", n=1, items=(), tags=(), reason=None, txid=1):
    return (
        *(txid, int(event_id[1:]), event_id, BATCH_TIME, reason),
        *(event_id, page, None if amount is None else Decimal(amount), n, datetime(2024, 1, 1, tzinfo=UTC)),
        *(None if items is None else [tuple(item) for item in items], None if tags is None else list(tags)),
        *({"k": n}, (n, (None,))),
    )


RECORDS = [
    record("e1", "home", "1.50", 1, [("a", 1), ("b", 0), ("c", 3)], ["x", "y"]),
    record("e2", "cart", "2.50", 0, [("d", 0)], []),
    record("e3", None, None, 0, None, None, txid=2),
    record("e4", "cart", "9.99", 4, [], ["z", None], txid=2),
    record("e5", None, None, 0, [("q", 0)], ["q"], reason="does not parse", txid=2),
]


@pytest.fixture(scope="session")
def events(spark, tmp_path_factory):
    """Five records of two txids, one of them dead; from files, so that nothing is computed while planning."""
    path = str(tmp_path_factory.mktemp("events"))
    spark.createDataFrame(RECORDS, SCHEMA).coalesce(1).write.mode("overwrite").parquet(path)
    return spark.read.schema(SCHEMA).parquet(path)


@pytest.fixture
def columns(events):
    return {name: kind for name, kind in events.dtypes if not name.startswith("_")}
