"""Schema drift: a file whose columns are not the definition's is named, with the column, before anything reads it."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.permissions import without_rights
from twinstream.errors import SchemaDrift, SourceUnreadable
from twinstream.sources.drift import check_json, check_parquet, read_footer, spark_type
from twinstream.sources.scan import sample_json

COLUMNS = {"id": "string", "amount": "decimal(12,2)", "at": "timestamp", "tags": "array<string>", "ok": "boolean"}
RECORD = {"id": "a", "amount": 1.5, "at": "2024-01-01T00:00:00Z", "tags": ["x"], "ok": True}


def check(folder: Path, *records: dict[str, Any], columns: dict[str, str] = COLUMNS) -> None:
    path = folder / "x.json"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    check_json(path, columns, sample_json(path))


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in RECORD.items() if key != name}


def test_records_as_defined_are_no_drift(tmp_path: Path) -> None:
    check(tmp_path, *[RECORD] * 10)
    check(tmp_path)


def test_an_added_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(SchemaDrift, match=r"x\.json has the column 'colour', which the definition does not have") as e:
        check(tmp_path, *[RECORD] * 3, RECORD | {"colour": "red"})
    assert "belongs to no txid" in e.value.untouched
    assert "replay" in e.value.next_step
    assert 'drift="ignore"' in e.value.next_step


def test_a_dropped_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(SchemaDrift, match=r"x\.json does not have the column 'amount' \(decimal\(12,2\)\) any more"):
        check(tmp_path, *[without("amount")] * 5)


def test_a_column_that_only_some_records_lack_is_no_drift(tmp_path: Path) -> None:
    check(tmp_path, *[without("amount")] * 9, RECORD)
    check(tmp_path, *[RECORD | {"amount": None}] * 9)


def test_a_few_bad_records_are_no_drift(tmp_path: Path) -> None:
    check(tmp_path, *[without("amount")] * 4)
    check(tmp_path, *[RECORD | {"amount": "many"}] * 4)
    check(tmp_path, *[RECORD | {"amount": "many"}] * 9, RECORD)


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        ("amount", "a lot", r"decimal\(12,2\), for example 'a lot'"),
        ("amount", True, r"decimal\(12,2\), for example True"),
        ("amount", {"value": 1}, r"decimal\(12,2\), for example \{'value': 1\}"),
        ("id", ["a"], r"string, for example \['a'\]"),
        ("id", {"a": 1}, "string, for example"),
        ("at", [2024], "timestamp, for example"),
        ("at", 1.5, "timestamp, for example"),
        ("tags", "x", r"array<string>, for example 'x'"),
        ("ok", "yes", "boolean, for example 'yes'"),
        ("ok", 1, "boolean, for example 1"),
    ],
)
def test_a_changed_column_is_named_with_an_example(tmp_path: Path, column: str, value: object, shown: str) -> None:
    with pytest.raises(SchemaDrift, match=rf"x\.json has values in the column '{column}' that are not {shown}"):
        check(tmp_path, *[RECORD | {column: value}] * 5)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("bigint", 5), ("int", -1), ("double", 1), ("double", 1.5), ("decimal(5,2)", "1.25"), ("string", 5),
        ("string", True), ("date", "2024-01-01"), ("timestamp", 17), ("struct<a:int>", {"a": 1}),
        ("map<string,int>", {}), ("array<int>", []),
    ],
)  # fmt: skip
def test_values_that_spark_takes_are_no_drift(tmp_path: Path, kind: str, value: object) -> None:
    check(tmp_path, *[{"x": value}] * 5, columns={"x": kind})


@pytest.mark.parametrize(
    ("kind", "value"),
    [("bigint", 1.5), ("bigint", "5"), ("int", True), ("struct<a:int>", [1]), ("map<string,int>", "x"),
     ("array<int>", {}), ("double", "x")],
)  # fmt: skip
def test_values_that_spark_does_not_take_are_drift(tmp_path: Path, kind: str, value: object) -> None:
    with pytest.raises(SchemaDrift, match="'x'"):
        check(tmp_path, *[{"x": value}] * 5, columns={"x": kind})


PARQUET = {
    "id": "string", "n": "bigint", "amount": "decimal(12,2)", "at": "timestamp", "day": "date",
    "local": "timestamp_ntz", "tags": "array<string>", "where": "struct<x:double,y:double>",
    "counts": "map<string,int>", "raw": "binary", "ok": "boolean", "small": "smallint", "tiny": "tinyint", "f": "float",
}  # fmt: skip
TABLE = pa.table(
    {
        "id": pa.array(["a", "b"]),
        "n": pa.array([1, 2], pa.int64()),
        "amount": pa.array([Decimal("1.00"), None], pa.decimal128(12, 2)),
        "at": pa.array([datetime(2024, 1, 1, tzinfo=UTC)] * 2, pa.timestamp("us", tz="UTC")),
        "day": pa.array([date(2024, 1, 1)] * 2),
        "local": pa.array([datetime(2024, 1, 1)] * 2, pa.timestamp("us")),  # noqa: DTZ001
        "tags": pa.array([["x"], []], pa.list_(pa.string())),
        "where": pa.array([{"x": 1.0, "y": 2.0}] * 2),
        "counts": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int32())),
        "raw": pa.array([b"x", b"y"]),
        "ok": pa.array([True, None]),
        "small": pa.array([1, 2], pa.int16()),
        "tiny": pa.array([1, 2], pa.int8()),
        "f": pa.array([1, 2], pa.float32()),
    }
)


def parquet(folder: Path, table: pa.Table, **options: Any) -> Path:
    pq.write_table(table, folder / "x.parquet", **options)
    return folder / "x.parquet"


def test_a_parquet_file_as_defined_gives_its_rows(tmp_path: Path) -> None:
    assert check_parquet(parquet(tmp_path, TABLE), PARQUET) == 2
    assert check_parquet(parquet(tmp_path, TABLE.slice(0, 0)), PARQUET) == 0


def test_the_order_of_parquet_columns_does_not_matter(tmp_path: Path) -> None:
    assert check_parquet(parquet(tmp_path, TABLE.select(list(reversed(TABLE.column_names)))), PARQUET) == 2


def test_an_added_parquet_column_is_named(tmp_path: Path) -> None:
    path = parquet(tmp_path, TABLE.append_column("colour", pa.array(["red"] * 2)))
    with pytest.raises(SchemaDrift, match=r"x\.parquet has the column 'colour', which the definition does not have"):
        check_parquet(path, PARQUET)


def test_a_dropped_parquet_column_is_named(tmp_path: Path) -> None:
    path = parquet(tmp_path, TABLE.drop_columns(["amount"]))
    with pytest.raises(SchemaDrift, match=r"x\.parquet does not have the column 'amount' \(decimal\(12,2\)\) any more"):
        check_parquet(path, PARQUET)


@pytest.mark.parametrize(
    ("column", "values", "found"),
    [
        ("n", pa.array([1, 2], pa.int32()), "int"),
        ("n", pa.array(["1", "2"]), "string"),
        ("amount", pa.array([Decimal("1.000")] * 2, pa.decimal128(12, 3)), "decimal(12,3)"),
        ("amount", pa.array([1.0, 2.0]), "double"),
        ("at", pa.array([datetime(2024, 1, 1)] * 2, pa.timestamp("us")), "timestamp_ntz"),  # noqa: DTZ001
        ("at", pa.array([1, 2], pa.timestamp("ns", tz="UTC")), "timestamp in nanoseconds"),
        ("tags", pa.array([[1], []], pa.list_(pa.int32())), "array<int>"),
        ("where", pa.array([{"x": 1.0, "z": 2.0}] * 2), "struct<x:double,z:double>"),
        ("id", pa.array([1, 2], pa.uint32()), "uint32"),
    ],
)
def test_a_changed_parquet_column_is_named_with_both_types(
    tmp_path: Path, column: str, values: pa.Array, found: str
) -> None:
    table = TABLE.set_column(TABLE.column_names.index(column), column, values)
    with pytest.raises(SchemaDrift) as error:
        check_parquet(parquet(tmp_path, table), PARQUET)
    wanted = f"x.parquet has the column {column!r} as {found}, where the definition has {PARQUET[column]}."
    assert wanted in error.value.what


def test_timestamps_as_older_sparks_write_them_are_no_drift(tmp_path: Path) -> None:
    """INT96 has no time zone of its own and is an instant for Spark."""
    table = TABLE.select(["id", "at"])
    path = parquet(tmp_path, table, use_deprecated_int96_timestamps=True, store_schema=False)
    assert pq.ParquetFile(path).schema.column(1).physical_type == "INT96"
    assert check_parquet(path, {"id": "string", "at": "timestamp"}) == 2


def test_dictionaries_and_large_types_are_what_they_hold() -> None:
    assert spark_type(pa.dictionary(pa.int32(), pa.string())) == "string"
    assert spark_type(pa.large_list(pa.large_string())) == "array<string>"


@pytest.mark.parametrize("damage", ["empty", "cut", "text", "footer"])
def test_a_corrupt_parquet_file_is_named(tmp_path: Path, damage: str) -> None:
    whole = parquet(tmp_path, TABLE).read_bytes()
    broken = {
        "empty": b"",
        "cut": whole[: len(whole) // 2],
        "text": b"hello" * 100,
        "footer": whole[:-200] + bytes(190) + whole[-10:],
    }[damage]
    (tmp_path / "x.parquet").write_bytes(broken)
    with pytest.raises(SourceUnreadable, match=r"The Parquet file .*x\.parquet is corrupt") as error:
        check_parquet(tmp_path / "x.parquet", PARQUET)
    assert "belongs to no txid" in error.value.untouched


def test_a_parquet_file_that_may_not_be_read_is_not_called_corrupt(tmp_path: Path) -> None:
    path = parquet(tmp_path, TABLE)
    read_footer(path)
    with without_rights(path), pytest.raises(SourceUnreadable, match=r"x\.parquet cannot be read: Permission denied"):
        read_footer(path)
