from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from tests.spark.prepare.conftest import BATCH_TIME
from twinstream.columns import parse_columns, parse_type
from twinstream.errors import DefinitionError
from twinstream.prepare import catalog, compile_prepare


@pytest.fixture
def prepared(events, columns):
    return lambda sql: compile_prepare(sql, columns).apply(events)


def kept(df):
    """The kept rows. All rows are computed: a filter in Spark would spare the others by itself."""
    names = [name for name in df.columns if not name.startswith("_")]
    return sorted((tuple(row[name] for name in names) for row in df.collect() if row["_kept"]), key=repr)


def record_counts(df):
    """Records in, records that gave a row, rows out: what the accounting needs."""
    row = df.selectExpr("count_if(_first)", "count_if(_first and _kept)", "count_if(_kept)").first()
    return tuple(row)


def test_no_prepare_gives_the_source_columns(events, columns):
    made = compile_prepare(None, columns).apply(events)
    assert made.columns[7:] == list(columns)
    assert record_counts(made) == (5, 4, 4)


def test_a_filter_and_expressions(prepared):
    made = prepared(
        """
        select e.event_id, -- the id
               upper(e.page) as page, amount * 2 as twice /* money */, s.a, m['k'] as k, e.s.b.c
        from events e where (page is not null) and amount < 5 -- cheap
        """
    )
    assert kept(made) == [("e1", "HOME", Decimal("3.00"), 1, 1, None), ("e2", "CART", Decimal("5.00"), 0, 0, None)]
    assert record_counts(made) == (5, 2, 2)


def test_what_is_filtered_or_dead_cannot_raise(prepared):
    made = prepared(
        "select event_id, 8 / n as share, cast(page as int) as never from events where n > 1 and page = '4'"
    )
    assert kept(made) == []
    made = prepared("select event_id, 8 / n as share from events where n <> 0 and 8 / n < 100")
    assert kept(made) == [("e1", 8.0), ("e4", 2.0)]
    assert record_counts(made) == (5, 2, 2)


def test_an_error_in_a_kept_record_is_raised(prepared):
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        prepared("select 8 / n as share from events").collect()


def test_the_clock_is_the_logged_batch_time(prepared):
    made = prepared(
        """
        select current_timestamp() as a, current_timestamp as b, now() as c, localtimestamp() as d, current_date as e,
               CURRENT_DATE() as f, unix_timestamp() as g, date_add(current_date, 1) as h, unix_timestamp(at) as i,
               curdate() as j, localtimestamp as k
        from events where at < now() and event_id = 'e1'
        """
    )
    moment = BATCH_TIME.replace(tzinfo=None)
    day, seconds = moment.date(), int(BATCH_TIME.timestamp())
    assert kept(made) == [
        (moment, moment, moment, moment, day, day, seconds, date(2024, 5, 7), 1704067200, day, moment)
    ]
    types = dict(made.dtypes)
    assert [types[name] for name in "abcdefgjk"] == [
        *("timestamp", "timestamp", "timestamp", "timestamp_ntz", "date", "date", "bigint", "date", "timestamp_ntz")
    ]


def test_the_users_own_text_is_what_runs(prepared):
    """sqlglot would write datediff back with casts to dates, and forget the difference of cast and try_cast."""
    made = prepared(
        "select datediff(hour, at, at + interval 5 hours) as h, try_cast(page as int) as i, 'it''s' as s, r'\\d' as r, "
        "1.50 as d, 7 div 2 as q, page is distinct from 'home' as x, `event_id` "
        "from events where event_id like any ('e1', 'z')"
    )
    assert kept(made) == [(5, None, "it's", "\\d", Decimal("1.50"), 3, False, "e1")]


def test_higher_order_functions_and_nested_fields(prepared):
    made = prepared(
        "select transform(items, I -> i.qty + n) as q, aggregate(items, 0, (a, i) -> a + i.qty) as total, items.sku, "
        "filter(items, i -> exists(tags, t -> t = 'x' and i.qty > 0))[0].sku as first_sku from events where n = 1"
    )
    assert kept(made) == [([2, 1, 4], 4, ["a", "b", "c"], "a")]


def test_lateral_view_explodes_an_array_of_structs(prepared):
    made = prepared(
        "select event_id, item.sku, t.item.qty * 10 as q, item from events lateral view explode(items) t as item "
        "where item.qty > 0 and events.page = 'home'"
    )
    assert [row[:3] for row in kept(made)] == [("e1", "a", 10), ("e1", "c", 30)]
    assert record_counts(made) == (5, 1, 2)


def test_a_record_without_items_stays_as_one_row_that_is_not_kept(prepared):
    made = prepared("select event_id, item.sku from events lateral view explode(items) t as item")
    assert kept(made) == [("e1", "a"), ("e1", "b"), ("e1", "c"), ("e2", "d")]
    assert record_counts(made) == (5, 2, 4)
    none = made.where("not _kept").select("_record_id", "_first", "event_id").collect()
    assert sorted(tuple(row) for row in none) == [("e3", True, None), ("e4", True, None), ("e5", True, None)]


def test_a_filtered_item_cannot_raise(prepared):
    made = prepared(
        "select event_id, 6 / item.qty as share from events lateral view explode(items) t as item where item.qty <> 0"
    )
    assert kept(made) == [("e1", 2.0), ("e1", 6.0)]
    assert record_counts(made) == (5, 1, 2)


def test_the_first_row_of_a_record_is_the_first_that_is_left(prepared):
    made = prepared("select item.sku from events lateral view explode(items) t as item where item.sku <> 'a'")
    assert sorted(made.where("_first and _kept").select("sku").collect()) == [("b",), ("d",)]


def test_lateral_view_outer_keeps_the_record_with_a_null_item(prepared):
    made = prepared("select event_id, item.sku from events lateral view outer explode(items) t as item")
    assert kept(made) == sorted(
        [("e1", "a"), ("e1", "b"), ("e1", "c"), ("e2", "d"), ("e3", None), ("e4", None)], key=repr
    )
    assert record_counts(made) == (5, 4, 6)
    only = prepared("select event_id, item from events lateral view outer explode(tags) t as item where item is null")
    assert kept(only) == [("e2", None), ("e3", None), ("e4", None)]


def test_explode_in_the_select_list(prepared):
    made = prepared("select event_id, explode(tags) as tags, 8 / n as share, now() as t from events where n > 0")
    assert [row[:3] for row in kept(made)] == [
        *(("e1", "x", 8.0), ("e1", "y", 8.0), ("e4", "z", 2.0), ("e4", None, 2.0))
    ]
    assert record_counts(made) == (5, 2, 4)
    outer = prepared("select *, explode_outer(tags) as tag from events")
    assert record_counts(outer) == (5, 4, 6)


def test_explode_gives_what_spark_itself_gives(spark, events, prepared):
    """The rewriting with higher-order functions against Spark's own explode, over the records that are alive."""
    events.where("_reason is null").createOrReplaceTempView("events")
    for sql in [
        "select event_id, item.* from events lateral view explode(items) t as item where item.qty >= n",
        "select item.sku s from `events` lateral view outer explode(items) t as item where n = 0 or item.qty > 0",
        "select *, 1 as one from events lateral view explode(tags) t as item",
        "select e.n + item.qty as x from events e lateral view explode(filter(items, i -> i.qty > 0)) as item",
        "select event_id, explode(map_entries(m)) as entry from events where n > 0",
        "select explode(array(n, n + 1)) as n from events",
    ]:
        theirs = spark.sql(sql)
        ours = prepared(sql).where("_kept").select(theirs.columns)
        assert sorted(map(repr, ours.collect())) == sorted(map(repr, theirs.collect())), sql
        assert [kind for _, kind in ours.dtypes] == [kind for _, kind in theirs.dtypes]


def test_a_map_that_only_spark_can_tell_is_refused_too(prepared):
    with pytest.raises(DefinitionError, match="explodes a map<string,int>, not an array"):
        prepared("select explode(map_concat(m, m)) as x from events")
    with pytest.raises(DefinitionError, match="Spark cannot run prepare"):
        prepared("select x from events lateral view explode(map_concat(m, m)) t as x")
    with pytest.raises(DefinitionError, match="has no type"):
        prepared("select event_id, null as x from events")


EXPRESSIONS = [
    *("page", "events.s.b.c", "s.b", "items.sku", "items[0].qty", "items[0]", "m['k']", "m.k", "tags[0]", "-amount"),
    *("- n", "-page", "5", "3000000000", "'x'", "1.5", "1L", "1.5BD", "1e3", "true", "n = 1", "not (n > 1)"),
    *("page like 'x'", "n between 1 and 2", "n in (1)", "page is null", "page is not null", "page <=> 'x'"),
    *("cast(page as decimal(5,1))", "try_cast(page as date)", "int(page)", "page::timestamp", "date '2020-01-01'"),
    *("timestamp '2020-01-01'", "cast(n as long)", "cast(n as varchar(3))", "string(n)", "decimal(n)", "upper(page)"),
    *("lower(n)", "coalesce(page, event_id)", "coalesce(amount, n)", "coalesce(null, n)", "if(n > 1, page, null)"),
    *("case when n > 1 then amount else amount end", "case when n > 1 then 1 else amount end", "n + 1", "amount * 2"),
    *(
        "case n when 1 then 'a' end",
        "current_timestamp",
        "current_date()",
        "now()",
        "to_date(page)",
        "to_timestamp(page)",
    ),
    *("(page)", "nvl(page, 'x')", "nullif(n, 1)", "length(page)", "date_trunc('day', at)", "page rlike 'x'", "at - at"),
    *("cast(array(1) as array<bigint>)", "cast(n as float)", "page || 'x'", "-cast(n as tinyint)", "n::string"),
    *("transform(items, n -> n.sku)", "named_struct('a', n).a", "element_at(m, 'k')", "year(at)", "substr(page, 1, 2)"),
]


def test_every_type_that_is_told_without_spark_is_the_one_that_spark_gives(events, columns):
    select = "select " + ", ".join(f"{sql} as c{n}" for n, sql in enumerate(EXPRESSIONS)) + " from events"
    prepared = compile_prepare(select, columns)
    actual = dict(prepared.apply(events).dtypes)
    told = {name: kind for name, kind in prepared.output.items() if kind is not None}
    assert len(told) > len(EXPRESSIONS) / 2
    for n, sql in enumerate(EXPRESSIONS):
        if f"c{n}" in told:
            assert told[f"c{n}"] == actual[f"c{n}"], sql


def test_column_lists_are_read_as_spark_reads_them(spark):
    ddl = (
        "a string, b decimal(12,2), c array<struct<sku:string,Qty:int>>, d map<string,array<long>>, e timestamp_ntz, "
        "f byte, g short, h integer, i real, j double, k binary, l date, m boolean, n dec, o numeric(3), "
        "p: timestamp_ltz, q struct<x float comment 'y', z:struct<w:tinyint>> comment 'nested', date date, r smallint"
    )
    assert list(parse_columns(ddl).items()) == spark.createDataFrame([], ddl).dtypes


def test_types_that_spark_prints_are_read_back(events):
    for _, kind in events.dtypes:
        assert str(parse_type(kind)) == kind


def test_every_function_of_this_spark_is_judged(spark):
    known = catalog.ROW_WISE | catalog.AGGREGATES | catalog.WINDOWS | catalog.GENERATORS
    known |= {*catalog.CLOCK, *catalog.UNSTEADY}
    operators = {"and", "or", "not", "in", "like", "ilike", "rlike", "between", "case", "when", "div", "regexp"}
    present = {row[0] for row in spark.sql("show system functions").collect() if row[0].replace("_", "a").isalnum()}
    assert present - operators - known == set()
    syntax = {"try_cast", "timestampadd", "timestampdiff", "position", "regexp"}
    assert known - present - syntax == set()
    kinds = [catalog.ROW_WISE, catalog.AGGREGATES, catalog.WINDOWS, catalog.GENERATORS, frozenset(catalog.UNSTEADY)]
    assert sum(map(len, kinds)) == len(frozenset().union(*kinds))
