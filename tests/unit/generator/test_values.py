"""Values fit their columns, look like what the column's name promises, and are now and then null."""

import json
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from twinstream.errors import DefinitionError
from twinstream.generator.kinds import Kind, parse_kind

WIDE = {
    "id": "bigint",
    "flag": "boolean",
    "tiny": "tinyint",
    "small": "smallint",
    "number": "int",
    "big": "bigint",
    "single": "float",
    "ratio": "double",
    "tax": "decimal(4,4)",
    "huge": "decimal(38,30)",
    "whole": "decimal(3,0)",
    "seen": "timestamp",
    "local": "timestamp_ntz",
    "day": "date",
    "tags": "array<string>",
    "items": "array<struct<sku:string,qty:int,price:decimal(10,2)>>",
    "where": "struct<city:string,at:struct<lat:double,lon:double>>",
    '100% odd"name': "string",
    "at": "timestamp",
}


def records(generated):
    lines = (line for path in generated.files for line in path.read_text(encoding="utf-8").splitlines())
    return [json.loads(line, parse_float=Decimal) for line in lines]


def test_every_type_gives_values_of_its_type(make):
    found = records(make(columns=WIDE, record_id="id", events=3_000))
    assert all(list(record) == list(WIDE) for record in found)
    some = {name: [record[name] for record in found if record[name] is not None] for name in WIDE}
    assert len(set(some["id"])) == 3_000
    assert all(0 <= value < 2**63 for value in some["id"])
    assert set(some["flag"]) == {True, False}
    assert all(-128 <= value < 128 for value in some["tiny"])
    assert all(-(2**15) <= value < 2**15 for value in some["small"])
    for name, precision, scale in (("tax", 4, 4), ("huge", 38, 30), ("whole", 3, 0)):
        assert all(abs(int(Decimal(value).scaleb(scale))) < 10**precision for value in some[name] if scale < 20)
        assert all(-Decimal(value).as_tuple().exponent <= scale for value in some[name])
    assert all(datetime.fromisoformat(value).tzinfo is not None for value in some["seen"])
    assert all(datetime.fromisoformat(value).tzinfo is None for value in some["local"])
    assert all(date(2025, 12, 1) < date.fromisoformat(value) <= date(2026, 1, 1) for value in some["day"])
    assert {len(value) for value in some["tags"]} == {0, 1, 2, 3, 4}
    assert all(set(item) == {"sku", "qty", "price"} for value in some["items"] for item in value)
    assert all(set(value) == {"city", "at"} for value in some["where"])


def test_json_and_parquet_hold_the_same_records(make):
    import pyarrow.parquet as pq

    columns = {name: kind for name, kind in WIDE.items() if name not in {"single", "ratio", "where"}}
    shares = {"late": 0.1, "duplicates": 0.1}
    plain = records(make("plain", columns=columns, record_id="id", events=3_000, **shares))
    table = make("table", columns=columns, record_id="id", events=3_000, format="parquet", **shares)
    rows = [row for path in table.files for row in pq.read_table(path).to_pylist()]

    def same(value):
        if isinstance(value, datetime):
            return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
        if isinstance(value, date):
            return value.isoformat()
        if isinstance(value, list):
            return [same(inner) for inner in value]
        return {name: same(inner) for name, inner in value.items()} if isinstance(value, dict) else value

    assert [same(row) for row in rows] == plain


def test_parquet_columns_have_the_types_of_the_definition(make):
    import pyarrow.parquet as pq

    schema = pq.read_schema(make(columns=WIDE, record_id="id", events=10, format="parquet").files[0])
    assert str(schema.field("seen").type) == "timestamp[us, tz=UTC]"
    assert str(schema.field("huge").type) == "decimal128(38, 30)"
    assert [field.name for field in schema] == list(WIDE)


def test_about_one_in_two_hundred_is_null_but_never_the_record_id_or_the_event_time(make_orders):
    found = records(make_orders(events=50_000))
    for name in ("customer", "country", "status", "quantity", "price"):
        assert sum(record[name] is None for record in found) == pytest.approx(250, rel=0.35)
    assert all(record["order_id"] is not None and record["placed_at"] is not None for record in found)


def test_a_few_pages_are_hot_and_most_are_rare(make):
    pages = Counter(record["page"] for record in records(make(events=20_000)))
    assert pages.most_common(1)[0][1] > 2_000
    assert len(pages) > 300
    assert any(page and page.startswith("/products/") for page in pages)


def test_orders_need_cleaning(make_orders):
    found = records(make_orders(events=20_000))
    customers = [record["customer"] for record in found if record["customer"]]
    assert any(customer != customer.strip() for customer in customers)
    assert any(customer != customer.lower() for customer in customers)
    assert all("@" in customer for customer in customers)
    assert any(record["country"] and record["country"].islower() for record in found)
    assert any(record["status"] == "test" for record in found)
    assert any(record["quantity"] == 0 for record in found)


@pytest.mark.parametrize(
    ("event_time", "kind", "value"),
    [
        ("at", "timestamp", "2026-01-01T00:00:0"),
        ("at", "date", "2026-01-01"),
        ("cast(at as timestamp)", "string", "2026-01-01T00:00:0"),
        ("timestamp_seconds(at)", "int", "17672256"),
        ("timestamp_millis(at)", "bigint", "17672256"),
        ("TIMESTAMP_MICROS(AT)", "bigint", "17672256"),
    ],
)
def test_event_time_can_be_an_expression_over_one_column(make, event_time, kind, value):
    digits = {"timestamp_seconds(at)": 10, "timestamp_millis(at)": 13, "TIMESTAMP_MICROS(AT)": 16}
    found = records(make(columns={"event_id": "string", "at": kind}, event_time=event_time, events=50))
    assert all(str(record["at"]).startswith(value) for record in found)
    assert all(len(str(record["at"])) == digits.get(event_time, len(str(record["at"]))) for record in found)


def test_an_event_time_that_no_column_carries_is_refused(make):
    with pytest.raises(DefinitionError, match="event time 'nowhere'"):
        make(event_time="nowhere")


def test_a_record_id_that_is_no_column_or_too_narrow_is_refused(make):
    with pytest.raises(DefinitionError, match="'missing' to be a column"):
        make(record_id="missing")
    narrow = {"event_id": "smallint", "at": "timestamp"}
    with pytest.raises(DefinitionError, match="40,000 different record ids"):
        make(columns=narrow, events=40_000)
    assert make(columns=narrow, events=30_000).events == 30_000


def test_types_are_read_with_their_nesting():
    assert parse_kind("c", "DECIMAL(12, 2)") == Kind("decimal", 12, 2)
    assert parse_kind("c", "array<struct<a:int,b:decimal(3,1)>>") == Kind(
        "array", element=Kind("struct", fields=(("a", Kind("int")), ("b", Kind("decimal", 3, 1))))
    )
    with pytest.raises(DefinitionError, match=r"map<string,int> \(column c\)"):
        parse_kind("c", "map<string,int>")


def test_timestamps_of_other_columns_lie_before_the_start(make):
    found = records(make(columns={"event_id": "string", "seen": "timestamp", "at": "timestamp"}))
    seen = [datetime.fromisoformat(record["seen"]) for record in found if record["seen"]]
    assert max(seen) <= datetime(2026, 1, 1, tzinfo=UTC)
