"""The truth itself, on cases small enough to be worked out by hand."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import truth as module
from tests.truth import truth_orders, truth_page_views

NOON = "2026-01-01T12:00:00.000000Z"


@pytest.fixture
def batch(tmp_path):
    """Write lines into a file and make a range of it."""

    def make(txid, *lines, batch_time=NOON, **more):
        path = tmp_path / f"{txid}.json"
        path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
        return {"txid": txid, "files": [str(path)], "batch_time": batch_time, **more}

    return make


def view(at, page="/", amount=1.5, event_id="e1"):
    return {"event_id": event_id, "page": page, "amount": amount, "at": at}


def order(**given):
    record = {
        "order_id": "o1",
        "customer": " Ada@Example.com ",
        "country": "de",
        "status": "paid",
        "quantity": 3,
        "price": 1.10,
        "placed_at": "2026-01-01T10:00:00Z",
    }
    return {**record, **given}


def counts(**given):
    return {**dict.fromkeys(module.CLASSES, 0), **given}


def test_views_are_counted_and_spend_is_summed_by_page_and_minute(batch):
    found = truth_page_views(
        [
            batch(
                1,
                view("2026-01-01T10:00:00Z", amount=1.5),
                view("2026-01-01T10:00:59.999999Z", amount="2.25"),
                view("2026-01-01T10:01:00Z", amount=None),
                view("2026-01-01T11:00:30+01:00", page="/b", amount=-7),
                view("2026-01-01 10:00:10", page=None),
            )
        ],
        "side",
    )
    assert found.header == ("page", "window_start", "window_end", "views", "spend")
    assert found.rows == [
        ("/", "2026-01-01T10:00:00Z", "2026-01-01T10:01:00Z", "2", "3.75"),
        ("/", "2026-01-01T10:01:00Z", "2026-01-01T10:02:00Z", "1", ""),
        ("/b", "2026-01-01T10:00:00Z", "2026-01-01T10:01:00Z", "1", "-7.00"),
    ]
    assert found.per_txid == {1: counts(read=5, filtered=1, emitted=4)}
    assert found.watermarks == {1: "2026-01-01T09:51:00Z"}


def test_orders_are_cleaned_and_repeated_ones_are_kept(batch):
    found = truth_orders(
        [
            batch(
                1,
                order(),
                order(),
                order(order_id="o2", customer=None, price=None, placed_at="2026-01-01T10:00:00.123Z"),
                order(order_id="o3", status="test"),
                order(order_id="o4", status=None),
                order(order_id="o5", quantity=0),
                order(order_id="o6", quantity=None),
            )
        ],
        "drop",
    )
    cleaned = ("o1", "ada@example.com", "DE", "paid", "3", "1.10", "3.30", "2026-01-01T10:00:00Z")
    assert found.rows == [
        cleaned,
        cleaned,
        ("o2", "", "DE", "paid", "3", "", "", "2026-01-01T10:00:00.123000Z"),
    ]
    assert found.per_txid == {1: counts(read=7, filtered=4, emitted=3)}


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        '{"order_id": "o1"',
        '{"order_id": "o1"} {}',
        "{'order_id': 'o1'}",
        "42",
        "null",
        '"text"',
        "[]",
        json.dumps([order()]),
        order(quantity="3"),
        order(quantity=True),
        order(quantity=3.0),
        order(quantity=2**31),
        order(quantity=-(2**31) - 1),
        order(quantity={}),
        order(price=1.005),
        order(price="1.005"),
        order(price=100_000_000),
        order(price="1e8"),
        order(price=float("nan")),
        order(price="NaN"),
        order(price=" 1.5"),
        order(price="1_000"),
        order(price=""),
        order(price=True),
        order(price={"value": 1}),
        order(price=[1]),
        order(order_id=None),
        {name: value for name, value in order().items() if name != "order_id"},
        order(placed_at=None),
        {name: value for name, value in order().items() if name != "placed_at"},
        order(placed_at="yesterday"),
        order(placed_at=""),
        order(placed_at=1_767_225_600),
        order(placed_at={}),
        order(placed_at="2026-02-30T00:00:00Z"),
        order(placed_at="2026-01-01T24:00:00Z"),
        order(placed_at="20260101T000000Z"),
        order(placed_at="2026-01-01T13:00:00.000001Z"),
    ],
)
def test_what_does_not_fit_is_a_dead_letter_and_moves_nothing(batch, line):
    found = truth_orders([batch(1, line)], "drop")
    assert found.per_txid == {1: counts(read=1, dead=1)}
    assert (found.rows, found.watermarks) == ([], {1: None})


@pytest.mark.parametrize(
    ("given", "column", "printed"),
    [
        ({"order_id": 42}, 0, "42"),
        ({"order_id": ""}, 0, ""),
        ({"status": True}, 3, "true"),
        ({"quantity": 2**31 - 1}, 4, "2147483647"),
        ({"price": "1.50"}, 5, "1.50"),
        ({"price": "1.500"}, 5, "1.50"),
        ({"price": 99_999_999.99}, 5, "99999999.99"),
        ({"price": "1.5e1"}, 5, "15.00"),
        ({"price": ".5"}, 5, "0.50"),
        ({"price": "-0.00"}, 5, "0.00"),
        ({"price": "-0.05"}, 6, "-0.15"),
        ({"price": 0}, 6, "0.00"),
        ({"placed_at": "2026-01-01"}, 7, "2026-01-01T00:00:00Z"),
        ({"placed_at": "2026-01-01T10:00"}, 7, "2026-01-01T10:00:00Z"),
        ({"placed_at": "2026-01-01T10:00:00.1234567-02:00"}, 7, "2026-01-01T12:00:00.123456Z"),
        ({"placed_at": "2026-01-01T10:00:00.1"}, 7, "2026-01-01T10:00:00.100000Z"),
        ({"placed_at": "2026-01-01T13:00:00Z"}, 7, "2026-01-01T13:00:00Z"),
        ({"unknown": {}}, 0, "o1"),
    ],
)
def test_what_fits_is_printed_as_its_column_says(batch, given, column, printed):
    assert truth_orders([batch(1, order(**given))], "keep").rows[0][column] == printed


def test_a_number_in_a_text_column_is_shown_as_it_was_written(batch):
    line = json.dumps(order(status="S")).replace('"S"', "{0}")
    texts = ["1.50", "1e3", "-0", "NaN", '{"a" : 1.50, "b":[1, 2]}', "[1,  2]"]
    found = truth_orders([batch(1, *(line.replace("{0}", text) for text in texts))], "keep")
    assert sorted(row[3] for row in found.rows) == sorted(texts)


def test_of_a_repeated_member_the_last_one_counts(batch):
    line = json.dumps(order())[:-1] + ', "quantity": "bad", "quantity": 5, "status": {}, "status": [7]}'
    row = truth_orders([batch(1, line)], "keep").rows[0]
    assert (row[3], row[4]) == ("[7]", "5")


def test_blank_lines_are_no_records_and_all_line_ends_count(tmp_path):
    path = tmp_path / "lines.json"
    line = json.dumps(order()).encode()
    path.write_bytes(b"\n  \t\r\n" + line + b"\r\n" + line + b"\r" + line + b"\n\n" + line)
    found = truth_orders([{"txid": 1, "files": [path], "batch_time": NOON}], "drop")
    assert found.per_txid == {1: counts(read=4, emitted=4)}


def test_text_that_is_no_utf_8_is_a_dead_letter_and_other_text_is_not(tmp_path):
    path = tmp_path / "bytes.json"
    good = json.dumps(order(customer="ZOË\u2028"), ensure_ascii=False).encode()
    path.write_bytes(good + b"\n" + good.replace("Ë".encode(), b"\xff") + b"\n")
    found = truth_orders([{"txid": 1, "files": [path], "batch_time": NOON}], "drop")
    assert found.per_txid == {1: counts(read=2, dead=1, emitted=1)}
    assert found.rows[0][1] == "zoë\u2028"


def test_a_page_view_is_late_once_its_window_was_closed_by_the_watermark_before(batch):
    ranges = [
        batch(1, view("2026-01-01T10:11:00Z"), view("2026-01-01T09:00:00Z", page="/same batch")),
        batch(2, view("2026-01-01T10:00:59.999999Z", page="/closed"), view("2026-01-01T10:01:00Z", page="/open")),
    ]
    for late in ("drop", "side"):
        found = truth_page_views(ranges, late)
        assert found.watermarks == {1: "2026-01-01T10:01:00Z", 2: "2026-01-01T10:01:00Z"}
        assert found.per_txid == {1: counts(read=2, emitted=2), 2: counts(read=2, late=1, emitted=1)}
        assert sorted(row[0] for row in found.rows) == ["/", "/open", "/same batch"]
    kept = truth_page_views(ranges, "keep")
    assert kept.per_txid[2] == counts(read=2, emitted=2)
    assert len(kept.rows) == 4


def test_an_order_is_late_below_the_watermark_but_not_on_it(batch):
    found = truth_orders(
        [
            batch(1, order(placed_at="2026-01-01T11:00:00Z")),
            batch(
                2,
                order(order_id="on", placed_at="2026-01-01T10:00:00Z"),
                order(order_id="below", placed_at="2026-01-01T09:59:59.999999Z"),
            ),
        ],
        "drop",
    )
    assert found.per_txid[2] == counts(read=2, late=1, emitted=1)
    assert [row[0] for row in found.rows] == ["o1", "on"]


def test_a_record_within_the_horizon_of_one_before_it_is_a_duplicate(batch):
    at = "2026-01-01T10:{}Z".format
    ranges = [
        batch(
            1, view(at("20:00"), page="/first"), view(at("21:00"), page="/again"), view(at("19:59"), event_id="other")
        ),
        batch(2, view(at("22:00"), page="/by the duplicate before"), view(at("23:00.000001"), page="/too far away")),
        batch(3, view(at("00:00"), event_id="late"), view(at("20:00"), event_id="other", page=None), "dead"),
        batch(4, view(at("00:00"), event_id="late", page="/late did not count"), exempt=True),
        batch(5, view(at("30:00"), event_id="given up"), discarded=True),
        batch(6, view(at("30:00"), event_id="given up", page="/now"), view(at("30:00"), event_id="given up")),
    ]
    found = truth_page_views(ranges, "side", horizon=60_000_000)
    assert sorted(row[0] for row in found.rows) == ["/", "/first", "/late did not count", "/now", "/too far away"]
    assert found.per_txid == {
        1: counts(read=3, duplicate=1, emitted=2),
        2: counts(read=2, duplicate=1, emitted=1),
        3: counts(read=3, duplicate=1, late=1, dead=1),
        4: counts(read=1, emitted=1),
        5: counts(read=1, discarded=1),
        6: counts(read=2, duplicate=1, emitted=1),
    }


def test_filtered_and_discarded_records_move_the_watermark_and_it_never_falls_back(batch):
    ranges = [
        batch(1, view("2026-01-01T10:00:00Z"), "dead"),
        batch(2, view("2026-01-01T10:30:00Z", page=None)),
        batch(
            3,
            view("2026-01-01T11:00:00Z"),
            view("2026-01-01T10:00:00Z"),
            view("2026-01-01T11:00:00Z", page=None),
            "dead",
            discarded=True,
        ),
        batch(4, view("2026-01-01T10:45:00Z")),
        batch(5),
        batch(6, view("2026-01-01T10:00:00Z"), exempt=True),
    ]
    found = truth_page_views(ranges, "side")
    assert found.watermarks == {
        1: "2026-01-01T09:50:00Z",
        2: "2026-01-01T10:20:00Z",
        3: "2026-01-01T10:50:00Z",
        4: "2026-01-01T10:50:00Z",
        5: "2026-01-01T10:50:00Z",
        6: "2026-01-01T10:50:00Z",
    }
    assert found.per_txid == {
        1: counts(read=2, dead=1, emitted=1),
        2: counts(read=1, filtered=1),
        3: counts(read=4, dead=1, discarded=3),
        4: counts(read=1, late=1),
        5: counts(),
        6: counts(read=1, emitted=1),
    }
    assert found.rows == [("/", "2026-01-01T10:00:00Z", "2026-01-01T10:01:00Z", "2", "3.00")]


def test_an_empty_first_txid_has_no_watermark(batch):
    found = truth_page_views([batch(1), batch(2, view("2026-01-01T10:00:00Z"))], "side")
    assert found.watermarks == {1: None, 2: "2026-01-01T09:50:00Z"}


def test_windows_before_1970_begin_on_the_minute_too(batch):
    found = truth_page_views([batch(1, view("1969-12-31T23:59:30Z"))], "side")
    assert found.rows[0][1:3] == ("1969-12-31T23:59:00Z", "1970-01-01T00:00:00Z")


def test_ranges_must_be_in_txid_order_and_late_a_known_word(batch):
    with pytest.raises(ValueError, match="out of order"):
        truth_page_views([batch(2), batch(1)], "side")
    with pytest.raises(ValueError, match="keep, drop or side"):
        truth_page_views([], "maybe")


def test_the_command_line_prints_csv_and_writes_the_accounting(batch, tmp_path):
    ranges = tmp_path / "ranges.json"
    ranges.write_text(json.dumps([batch(1, view("2026-01-01T10:00:00Z", page='/a "b", ü'), "dead")]))
    accounting = tmp_path / "accounting.json"
    script = Path(module.__file__)
    command = [sys.executable, "-I", script, "page_views", "--ranges", ranges, "--late", "side"]
    printed = subprocess.run([*command, "--accounting", accounting], check=True, capture_output=True).stdout
    assert list(csv.reader(io.StringIO(printed.decode()))) == [
        ["page", "window_start", "window_end", "views", "spend"],
        ['/a "b", ü', "2026-01-01T10:00:00Z", "2026-01-01T10:01:00Z", "1", "1.50"],
    ]
    assert json.loads(accounting.read_text())["per_txid"]["1"] == counts(read=2, dead=1, emitted=1)


def test_the_truth_imports_nothing_of_the_engine():
    source = Path(module.__file__).read_text()
    imported = {line.split()[1].split(".")[0] for line in source.splitlines() if line.startswith(("import ", "from "))}
    assert imported <= sys.stdlib_module_names
