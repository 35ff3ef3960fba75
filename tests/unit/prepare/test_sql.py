from __future__ import annotations

import subprocess
import sys

import pytest

from twinstream.columns import parse_columns
from twinstream.errors import DefinitionError
from twinstream.prepare import compile_expression, compile_prepare

COLUMNS = parse_columns(
    "event_id string, page string, amount decimal(12,2), at timestamp, items array<struct<sku:string,qty:int>>, "
    "tags array<string>, m map<string,int>, s struct<a:int,b:struct<c:date>>"
)


def output(sql):
    return compile_prepare(sql, COLUMNS).output


def refusal(sql):
    with pytest.raises(DefinitionError) as error:
        compile_prepare(sql, COLUMNS)
    return str(error.value)


def test_no_prepare_keeps_all_columns():
    assert compile_prepare(None, COLUMNS).output == COLUMNS


def test_a_star_stands_for_the_source_columns():
    assert output("select * from events") == COLUMNS
    assert output("SELECT *, upper(page) AS big FROM events;") == {**COLUMNS, "big": "string"}
    assert list(output("select * except (items, M) from events")) == ["event_id", "page", "amount", "at", "tags", "s"]


def test_names_are_as_written_and_qualifiers_are_understood():
    sql = "select e.EVENT_ID, e.s.b.c, s.a as x, `page` p, s.* from events e where e.amount > 1"
    assert output(sql) == {
        "EVENT_ID": "string",
        "c": "date",
        "x": "int",
        "p": "string",
        "a": "int",
        "b": "struct<c:date>",
    }


def test_nothing_heavy_is_imported_with_the_package():
    """Pipeline definitions are loaded while Airflow parses its DAGs."""
    code = "import sys, twinstream.prepare, twinstream.definition, twinstream.columns as c; "
    code += "print([name for name in ('pyspark', 'sqlglot', 'pandas') if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_an_exploded_item_brings_its_fields():
    sql = "select event_id, item.sku, t.item.qty as n, item from events lateral view explode(items) t as item"
    assert output(sql) == {
        "event_id": "string",
        "sku": "string",
        "n": "int",
        "item": "struct<sku:string,qty:int>",
    }
    assert output("select item.* from events lateral view outer explode(items) as item") == {
        "sku": "string",
        "qty": "int",
    }
    assert output("select explode(tags) as tags from events") == {"tags": "string"}
    assert "item" in output("select * from events lateral view explode(tags) t as item")


def test_types_that_only_spark_can_tell_are_left_open():
    assert output("select amount * 2 as double, date_trunc('day', at) as day from events") == {
        "double": None,
        "day": None,
    }


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("select page from events group by page", "GROUP BY"),
        ("select page from events where page = 'a' having true", "HAVING"),
        ("select distinct page from events", "DISTINCT"),
        ("select page from events order by page", "ORDER BY"),
        ("select page from events sort by page", "SORT BY"),
        ("select page from events limit 3", "LIMIT"),
        ("select page from events union all select page from events", "UNION"),
        ("select page from events intersect select page from events", "INTERSECT"),
        ("select page from events join other using (page)", "joins"),
        ("select page from events, other", "joins"),
        ("select page from events cross join lateral explode(tags)", "joins"),
        ("with x as (select 1) select page from events", "WITH"),
        ("select page from (select * from events)", "subqueries"),
        ("select page from events where page in (select page from events)", "subqueries"),
        ("select (select 1) as x from events", "subqueries"),
        ("select exists(select 1) as x from events", "subqueries"),
        ("select page from other", "other"),
        ("select page from db.events", "db.events"),
        ("select page from events tablesample (10 percent)", "TABLESAMPLE"),
        ("select /*+ broadcast(events) */ page from events", "hints"),
        ("select page from events qualify page = 'x'", "QUALIFY"),
        ("select page from events |> where page = 'x'", "|>"),
        ("select count(*) as n from events", "aggregate function count"),
        ("select max(page) as n from events", "aggregate function max"),
        ("select collect_list(page) as n from events", "aggregate function collect_list"),
        ("select row_number() over (order by at) as n from events", "window functions"),
        ("select sum(amount) over () as n from events", "window functions"),
        ("select lag(page) as n from events", "window function lag"),
        ("select window(at, '1 minute') as n from events", "Aggregate(window="),
        ("select struct(*) as n from events", "'*' inside a function"),
        ("insert into x select page from events", "not a SELECT"),
        ("from events select page", "not a SELECT"),
        ("select page from events; select page from events", "more than one statement"),
        ("select 1 as x", "reads from no table"),
        ("", "empty"),
        (" -- nothing", "empty"),
    ],
)
def test_what_is_not_row_wise_is_refused_by_name(sql, words):
    assert words in refusal(sql)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("select pge from events", "Did you mean 'page'?"),
        ("select events.pge from events", "Did you mean 'page'?"),
        ("select events.page from events e", "'events.page', which the source does not have"),
        ("select page from events where pagee = 'x'", "Did you mean 'page'?"),
        ("select nothing from events", "It has: event_id, page"),
        ("select _txid from events", "Twinstream's own"),
        ("select * except (pge) from events", "Did you mean 'page'?"),
        ("select amount + 1 as a, a + 1 as b from events", "same SELECT"),
        ("select uper(page) as x from events", "Did you mean 'upper'?"),
        ("select my_registered_udf_(page) as x from events", "not a function of Spark's"),
        ("select `upper`(page) as x from events", "without backticks"),
        ("select system.builtin.upper(page) as x from events", "qualifier"),
        ("select upper(page) from events", "has no name"),
        ("select page as _p from events", "underscore"),
        ("select page, event_id as PAGE from events", "two columns the name 'PAGE'"),
        ("select page, from events", "comma too many"),
        ("select page from events where", "cannot be read"),
        ("select page + from events", "cannot be read"),
        ("select 'page from events", "cannot be read"),
        ("select s.a.* from events", "not known to be a struct"),
        ("select * replace (1 as page) from events", "not replace"),
    ],
)
def test_what_cannot_run_is_refused_with_a_hint(sql, words):
    assert words in refusal(sql)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("select explode(m) as x from events", "exploding a map"),
        ("select explode(m) as (k, v) from events", "exploding a map"),
        ("select k from events lateral view explode(m) t as k, v", "exploding a map"),
        ("select k from events lateral view explode(m) t as k", "exploding a map"),
        ("select posexplode(tags) as (p, x) from events", "posexplode"),
        ("select x from events lateral view posexplode(tags) t as p, x", "posexplode"),
        ("select inline(items) as x from events", "inline"),
        ("select stack(2, 1, 2) as x from events", "stack"),
        ("select json_tuple(page, 'a') as x from events", "get_json_object"),
        ("select explode(tags) as x, explode(tags) as y from events", "more than one explode"),
        ("select explode(tags) as x from events lateral view explode(items) t as i", "in this place"),
        ("select x from events lateral view explode(tags) t as x lateral view explode(tags) u as y", "LATERAL VIEW"),
        ("select 1 + explode(tags) as x from events", "in this place"),
        ("select page from events where explode(tags) = 'x'", "in this place"),
        ("select explode(tags) from events", "has no name"),
        ("select page from events lateral view explode(tags) t", "without a name"),
        ("select page from events lateral view explode(tags) t as page", "like a column of the source"),
        ("select page from events lateral view explode(tags) t as _x", "Twinstream's own"),
        ("select explode(page) as x from events", "not an array"),
    ],
)
def test_only_one_explode_of_an_array_is_allowed(sql, words):
    assert words in refusal(sql)


@pytest.mark.parametrize(
    "call",
    [
        "rand()",
        "randn(1)",
        "random()",
        "uuid()",
        "shuffle(tags)",
        "monotonically_increasing_id()",
        "RAND ( )",
        "spark_partition_id()",
        "input_file_name()",
        "current_user()",
        "current_user",
        "user",
        "version()",
        "aes_encrypt(page, page)",
        "java_method('java.util.UUID', 'randomUUID')",
        "current_time()",
        "current_time",
        "upper(concat(page, rand()))",
        "transform(tags, x -> uuid())",
        "randstr(3)",
        "uniform(1, 2)",
    ],
)
def test_what_is_not_deterministic_is_refused(call):
    words = refusal(f"select {call} as x from events")
    assert "run again" in words
    assert "run again" in refusal(f"select page from events where {call} is null")


@pytest.mark.parametrize(
    "text",
    [
        "timestamp 'now'",
        "cast('today' as date)",
        "date('tomorrow')",
        "to_timestamp('now')",
        "'yesterday'::timestamp",
        "at > 'now'",
        "at between 'yesterday' and '2030-01-01'",
        "timestamp_ntz ' NOW '",
    ],
)
def test_words_that_spark_reads_as_the_clock_are_refused(text):
    assert "depends on when it runs" in refusal(f"select {text} as x from events")


def test_the_same_words_as_plain_texts_are_fine():
    assert output("select page from events where page = 'today'") == {"page": "string"}


def test_a_column_may_be_called_like_a_function_of_the_clock():
    prepared = compile_prepare(
        "select user, user as u, current_date d from events", {"user": "int", "current_date": "int"}
    )
    assert list(prepared.output) == ["user", "u", "d"]


def test_layout_and_comments_are_not_in_the_canonical_form_but_literals_and_order_are():
    def canonical(sql):
        return compile_prepare(sql, COLUMNS).canonical

    base = canonical("select page, amount from events where page is not null and amount > 1")
    assert base == canonical(
        "SELECT page,\n  amount -- what it cost\nFROM events /* all */ WHERE (page IS NOT NULL) AND (amount > 1);"
    )
    others = [
        "select amount, page from events where page is not null and amount > 1",
        "select page, amount from events where page is not null and amount > 1.0",
        "select page, amount from events where page is not null or amount > 1",
        "select page as PAGE, amount from events where page is not null and amount > 1",
    ]
    assert len({base, *map(canonical, others)}) == 5


def test_a_single_expression_is_held_to_the_same_rules():
    assert compile_expression("coalesce(events.at, now()) -- or so", COLUMNS).sql == "coalesce(at, `_batch_time`)"
    assert compile_expression("at", COLUMNS).type == "timestamp"
    assert compile_expression("cast(page as timestamp)", COLUMNS).type == "timestamp"
    for bad in ("att", "rand()", "max(at)", "(select 1)", "explode(tags)", "at +", "_kept"):
        with pytest.raises(DefinitionError):
            compile_expression(bad, COLUMNS)
