"""What a definition is refused for, and how that is said."""

from __future__ import annotations

import pytest

from twinstream.errors import DefinitionError
from twinstream.operators import (
    Aggregate,
    Append,
    approx_distinct,
    avg,
    count,
    first,
    fixed,
    last,
    max_,
    min_,
    sum_,
)

COLUMNS: dict[str, str | None] = {
    "page": "string",
    "amount": "decimal(12,2)",
    "wide": "decimal(38,6)",
    "deep": "decimal(38,30)",
    "n": "int",
    "price": "double",
    "ratio": "float",
    "at": "timestamp",
    "tags": "map<string,string>",
    "nested": "struct<id:int,attrs:array<map<string,int>>>",
    "items": "array<struct<map:int,variant:double>>",
    "doc": "variant",
    "nothing": "void",
    "folded": "string collate UTF8_LCASE",
    "unknown": None,
}


def refusal(operator: Aggregate | Append, columns: dict[str, str | None] = COLUMNS) -> DefinitionError:
    with pytest.raises(DefinitionError) as caught:
        operator.check(columns)
    return caught.value


def test_a_good_definition_passes():
    Aggregate(
        by=["page", "price", "items"],
        window=fixed("1 minute"),
        measures={
            "rows": count(),
            "with_tags": count("tags"),
            "spend": sum_("amount"),
            "total": sum_("n"),
            "mean": avg("amount"),
            "lowest": min_("price"),
            "highest": max_("ratio"),
            "pages": approx_distinct("page"),
            "first_item": first("items"),
            "last_at": last("at"),
        },
    ).check(COLUMNS)
    Aggregate(measures={"rows": count()}).check(COLUMNS)
    Append().check(COLUMNS)


def test_what_is_not_known_yet_is_not_refused():
    Aggregate(
        by=["unknown"], measures={"s": sum_("unknown"), "d": approx_distinct("unknown"), "f": first("unknown")}
    ).check(COLUMNS)


def test_an_unknown_key_names_the_nearest_column():
    error = refusal(Aggregate(by=["pgae"], measures={"rows": count()}))
    assert 'the column "pgae", which the prepared rows do not have' in error.what
    assert error.next_step == 'Did you mean "page"?'


def test_case_counts_in_column_names():
    assert refusal(Aggregate(by=["Page"], measures={"rows": count()})).next_step == 'Did you mean "page"?'


def test_an_unknown_measured_column_is_named_with_its_measure():
    error = refusal(Aggregate(measures={"spend": sum_("amuont")}))
    assert 'The measure "spend", sum_("amuont"), uses the column "amuont"' in error.what
    assert error.next_step == 'Did you mean "amount"?'
    assert "count" in refusal(Aggregate(measures={"c": count("amuont")})).what


def test_without_a_near_column_all_are_listed():
    error = refusal(Aggregate(measures={"x": sum_("qqqqqq")}), {"page": "string", "n": "int"})
    assert error.next_step == "The columns are: page, n."


@pytest.mark.parametrize("measure", [sum_("price"), avg("price"), sum_("ratio"), avg("ratio")], ids=str)
def test_floating_point_sums_name_the_decimal_to_use(measure):
    error = refusal(Aggregate(measures={"x": measure}))
    assert "the result would depend on their order" in error.what
    assert "decimal(28,6)" in error.next_step


@pytest.mark.parametrize("column", ["page", "at", "tags", "doc", "items", "nothing"])
@pytest.mark.parametrize("measure", [sum_, avg], ids=["sum_", "avg"])
def test_only_numbers_are_summed(column, measure):
    assert (
        f'needs a number, but "{column}" is {COLUMNS[column]}'
        in refusal(Aggregate(measures={"x": measure(column)})).what
    )


@pytest.mark.parametrize("measure", [sum_, avg], ids=["sum_", "avg"])
def test_a_decimal_that_could_overflow_names_the_one_to_use(measure):
    assert "decimal(28,6)" in refusal(Aggregate(measures={"x": measure("wide")})).next_step
    assert "decimal(28,28)" in refusal(Aggregate(measures={"x": measure("deep")})).next_step


def test_a_wide_decimal_may_be_compared():
    Aggregate(by=["wide"], measures={"x": min_("wide"), "y": last("wide")}).check(COLUMNS)


@pytest.mark.parametrize("column", ["tags", "nested"])
def test_maps_are_no_keys(column):
    error = refusal(Aggregate(by=[column], measures={"rows": count()}))
    assert "a map cannot be compared" in error.what
    assert f"to_json({column})" in error.next_step


@pytest.mark.parametrize("measure", [min_, max_, first, last, approx_distinct], ids=lambda made: made.__name__)
@pytest.mark.parametrize("column", ["tags", "nested", "doc", "nothing", "folded"])
def test_what_cannot_be_compared_is_not_measured(measure, column):
    error = refusal(Aggregate(measures={"x": measure(column)}))
    assert f'"{column}"' in error.what
    assert error.next_step


def test_field_names_are_not_taken_for_types():
    Aggregate(by=["items"], measures={"x": max_("items")}).check(COLUMNS)


def test_intervals_of_a_fixed_kind_may_be_compared():
    Aggregate(measures={"x": max_("d")}).check({"d": "interval day to second"})
    assert "interval" in refusal(Aggregate(measures={"x": max_("d")}), {"d": "interval"}).what


def test_nested_values_are_not_counted_as_distinct():
    assert "needs a plain value" in refusal(Aggregate(measures={"x": approx_distinct("items")})).what


def test_no_measures():
    assert refusal(Aggregate(by=["page"])).what == "Aggregate has no measures."
    assert refusal(Aggregate()).what == "Aggregate has no measures."


@pytest.mark.parametrize("by", [["page", "page"], ["page"]])
def test_result_columns_have_names_of_their_own(by):
    assert "two result columns" in refusal(Aggregate(by=by, measures={"Page": count()})).what


def test_names_that_differ_only_in_case_are_one_name():
    error = refusal(Aggregate(measures={"rows": count(), "Rows": count()}))
    assert error.what == 'Aggregate has two result columns named "Rows" and "rows", which differ only in case.'


@pytest.mark.parametrize("name", ["_rows", "window_start", "window_end", "Window_End", "", "  "])
def test_reserved_and_empty_names(name):
    assert refusal(Aggregate(measures={name: count()})).next_step
    assert refusal(Aggregate(by=[name], measures={"rows": count()}), {**COLUMNS, name: "int"}).next_step


def test_append_refuses_reserved_names_and_no_columns():
    assert "reserved" in refusal(Append(), {"_txid": "bigint"}).what
    assert "no columns" in refusal(Append(), {}).what


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ({"by": "page", "measures": {}}, 'by=["page"]'),
        ({"by": [1]}, 'by=["page"]'),
        ({"window": "1 minute"}, 'fixed("1 minute")'),
        ({"measures": [count()]}, '{"rows": count()}'),
        ({"measures": {"rows": count}}, "count()"),
        ({"measures": {1: count()}}, "count()"),
    ],
)
def test_arguments_of_the_wrong_kind_are_refused_where_they_are_written(arguments, hint):
    with pytest.raises(DefinitionError) as caught:
        Aggregate(**arguments)
    assert hint in caught.value.next_step


def test_a_measure_takes_a_name():
    for measure in (sum_, avg, min_, first, count):
        with pytest.raises(DefinitionError, match="takes the name of a column"):
            measure(7)
