from __future__ import annotations

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from tests.spark.prepare.conftest import BATCH_TIME
from twinstream.errors import DefinitionError
from twinstream.prepare import Rows, batch_time, compile_prepare


@pytest.fixture
def rows(events):
    marked = events.withColumns({"_kept": F.col("_reason").isNull(), "_first": F.lit(True)})
    return Rows(marked, tuple(name for name in marked.columns if name.startswith("_")))


def kept(rows, *names):
    """The kept rows. All rows are computed: a filter in Spark would spare the others by itself."""
    chosen = [row for row in rows.df.collect() if row["_kept"]]
    return sorted((tuple(row[name] for name in names or rows.columns) for row in chosen), key=repr)


def ids(rows):
    return [row[0] for row in kept(rows, "_record_id")]


def test_only_user_columns_are_seen(rows, columns):
    assert rows.columns == list(columns)
    assert dict(rows.dtypes) == columns
    assert rows.schema.names == list(columns)


def test_a_filter_removes_nothing_and_marks_what_is_filtered(rows):
    filtered = rows.where(rows.page == "cart").filter("amount > 5")
    assert ids(filtered) == ["e4"]
    assert filtered.df.count() == 5
    assert filtered.df.where("_kept is null").count() == 0
    assert filtered.columns == rows.columns


def test_a_condition_that_is_null_filters(rows):
    assert ids(rows.where("page <> 'home'")) == ["e2", "e4"]


def test_a_filter_does_not_bring_back_what_is_dead_or_filtered(rows):
    assert ids(rows.where(F.lit(True))) == ["e1", "e2", "e3", "e4"]
    assert ids(rows.where("n = 0").where("true")) == ["e2", "e3"]


def test_what_is_computed_is_computed_for_kept_rows_only(rows):
    """Under ANSI, 1 / 0 and a bad cast raise: here only rows that were filtered, or are dead, would."""
    made = (
        rows.where("n <> 0")
        .where(F.lit(10) / rows.n > 1)
        .withColumn("share", F.lit(8) / F.col("n"))
        .select("event_id", "share", (F.lit(1) % F.col("n")).alias("rest"), F.expr("1 div n as whole"))
        .selectExpr("*", "cast(substr(event_id, 2) as int) / share as q", "1 / (share - 100) as r")
    )
    assert kept(made, "event_id", "share", "rest", "whole", "q") == [("e1", 8.0, 0, 1, 0.125), ("e4", 2.0, 1, 0, 2.0)]
    assert made.df.count() == 5


def test_without_the_guard_the_same_would_raise(events):
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        events.select(F.lit(8) / F.col("n")).collect()


def test_an_error_in_a_kept_row_is_raised(rows):
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        rows.select((F.lit(8) / F.col("n")).alias("x")).df.collect()


def test_hidden_columns_come_along(rows):
    made = rows.select(F.upper("page").alias("p")).drop("nothing")
    assert made.columns == ["p"]
    assert kept(made, "_txid", "_record_id", "p") == [
        *((1, "e1", "HOME"), (1, "e2", "CART"), (2, "e3", None), (2, "e4", "CART"))
    ]


def test_names_are_those_that_spark_gives(rows):
    chosen = rows.select("event_id", F.col("PAGE"), rows["n"] + 1, rows.s.a, "s.b.c", F.lit(1).alias("one"), rows[3])
    expected = rows.df.select(
        "event_id", F.col("PAGE"), F.col("n") + 1, F.col("s").a, "s.b.c", F.lit(1).alias("one"), "n"
    )
    assert chosen.columns == expected.columns
    assert rows.select("*").columns == rows.columns
    assert rows.select("*", F.lit(1).alias("x")).columns == [*rows.columns, "x"]
    assert rows.select(F.col("*")).columns == rows.columns
    assert rows.select("s.*", "event_id").columns == ["a", "b", "event_id"]
    assert rows.select(["event_id", "n"]).columns == ["event_id", "n"]
    assert rows[["event_id", "n"]].columns == ["event_id", "n"]
    assert ids(rows[rows.n == 4]) == ["e4"]


def test_columns_are_added_replaced_renamed_and_dropped(rows):
    few = rows.select("event_id", "n")
    assert kept(few.withColumn("N", F.col("n") * 2).withColumn("m", F.col("n") + 1))[:2] == [("e1", 2, 3), ("e2", 0, 1)]
    assert few.withColumns({"a": F.lit(1), "n": F.lit(2)}).columns == ["event_id", "n", "a"]
    assert few.withColumnRenamed("N", "count").columns == ["event_id", "count"]
    assert few.withColumnRenamed("nothing", "count").columns == ["event_id", "n"]
    assert few.withColumnsRenamed({"event_id": "n", "n": "event_id"}).columns == ["n", "event_id"]
    assert few.drop("N").columns == ["event_id"]
    assert few.drop(F.col("n"), "nothing").columns == ["event_id"]
    assert few.transform(lambda r, name: r.drop(name), "n").columns == ["event_id"]
    with pytest.raises(DefinitionError, match="not rows"):
        few.transform(lambda r: r.df)


def test_a_column_called_like_a_method_is_had_by_its_name(rows):
    counted = rows.withColumn("count", F.lit(1)).withColumn("a.b", F.lit(2))
    assert set(kept(counted.select(counted["count"], counted["a.b"]))) == {(1, 2)}
    with pytest.raises(DefinitionError, match=r"write rows\['count'\]"):
        counted.count()


@pytest.mark.parametrize(
    "name",
    [
        "groupBy",
        "join",
        "distinct",
        "dropDuplicates",
        "limit",
        "orderBy",
        "sort",
        "union",
        "unionByName",
        "sample",
        "repartition",
        "coalesce",
        "mapInPandas",
        "mapInArrow",
        "collect",
        "count",
        "show",
        "toPandas",
        "cache",
        "agg",
        "rdd",
        "write",
        "writeTo",
        "sparkSession",
        "crossJoin",
        "exceptAll",
        "toDF",
        "fillna",
        "na",
        "createTempView",
    ],
)
def test_every_other_thing_that_a_dataframe_has_is_refused(rows, name):
    with pytest.raises(DefinitionError) as error:
        getattr(rows, name)
    assert f"prepare is row-wise (filter, map, explode); {name} is not" in str(error.value)


def test_a_column_that_is_not_there_is_named_with_the_nearest(rows):
    for use in (lambda: rows.pge, lambda: rows["pge"]):
        with pytest.raises(DefinitionError, match=r"Did you mean 'page'\?"):
            use()
    with pytest.raises(DefinitionError, match="loop"):
        list(rows)
    with pytest.raises(DefinitionError, match="no column"):
        rows.select()


@pytest.mark.parametrize(
    "column",
    [
        lambda: F.explode("tags"),
        lambda: F.posexplode("tags"),
        lambda: F.inline("items"),
        lambda: F.expr("EXPLODE(tags)"),
        lambda: F.explode_outer("tags").alias("x"),
        lambda: F.stack(F.lit(1), F.lit(2)),
        lambda: F.json_tuple("page", "a"),
    ],
)
def test_an_explode_in_a_function_is_to_be_written_as_sql(rows, column):
    for use in (rows.select, lambda c: rows.withColumn("x", c)):
        with pytest.raises(DefinitionError, match="as SQL"):
            use(column())
    with pytest.raises(DefinitionError, match="as SQL"):
        rows.selectExpr("explode(tags) as x")


@pytest.mark.parametrize(
    "column",
    [
        F.rand,
        F.randn,
        F.uuid,
        F.monotonically_increasing_id,
        F.spark_partition_id,
        F.input_file_name,
        F.current_user,
        lambda: F.shuffle("tags"),
        lambda: F.expr("rand()"),
        lambda: F.expr("RAND( )"),
        lambda: F.expr("current_user"),
        lambda: F.when(F.col("n") > 1, F.concat("page", F.uuid())),
        lambda: F.transform("tags", lambda x: F.rand()),
    ],
)
def test_what_is_not_deterministic_is_refused(rows, column):
    for use in (rows.select, lambda c: rows.withColumn("x", c), lambda c: rows.where(c.isNull())):
        with pytest.raises(DefinitionError, match="run again"):
            use(column())


@pytest.mark.parametrize(
    "column",
    [
        F.current_timestamp,
        F.now,
        F.current_date,
        F.curdate,
        F.localtimestamp,
        F.unix_timestamp,
        lambda: F.expr("current_timestamp"),
        lambda: F.expr("Current_Date"),
        lambda: F.date_sub(F.current_date(), 1),
    ],
)
def test_the_clock_is_refused_and_the_batch_time_named(rows, column):
    with pytest.raises(DefinitionError, match=r"batch_time\(\)"):
        rows.select(column().alias("x"))


def test_the_batch_time_is_the_logged_one(rows):
    made = rows.where(batch_time() > rows.at).withColumn("t", batch_time()).selectExpr("t = now() as same", "t")
    assert set(kept(made)) == {(True, BATCH_TIME.replace(tzinfo=None))}


def test_literals_are_not_mistaken_for_code(rows):
    texts = ["rand()", "it's explode(x)", 'a "now()"', "_txid", "\\' uuid()", "OVER (", "(select"]
    made = rows.select(*(F.lit(text).alias(f"c{n}") for n, text in enumerate(texts)))
    assert kept(made)[0] == tuple(texts)
    assert ids(rows.where((F.col("page") != "rand()") & (rows.page != "_kept"))) == ["e1", "e2", "e4"]


def test_aggregates_windows_and_subqueries_are_refused(rows):
    for column, words in [
        (F.sum("n"), "aggregate function sum"),
        (F.count("*").alias("x"), "aggregate function count"),
        (F.expr("max(n)"), "aggregate function max"),
        (F.row_number().over(Window.partitionBy("page").orderBy("at")), "window functions"),
        (F.lag("n").over(Window.orderBy("at")), "window functions"),
        (F.window("at", "1 minute"), "window function window"),
        (F.expr("(select 1)"), "subqueries"),
    ]:
        with pytest.raises(DefinitionError) as error:
            rows.select(column)
        assert words in str(error.value)


def test_twinstreams_own_columns_are_out_of_reach(rows):
    for use in [
        lambda: rows["_txid"],
        lambda: rows.select("_txid"),
        lambda: rows.select(F.col("_hash") + 1),
        lambda: rows.select(F.col("`_hash`").alias("x")),
        lambda: rows.where("_kept"),
        lambda: rows.where(F.col("_kept")),
        lambda: rows.selectExpr("_txid"),
        lambda: rows.drop("_txid"),
        lambda: rows.withColumn("_kept", F.lit(True)),
        lambda: rows.withColumn("_mine", F.lit(True)),
        lambda: rows.withColumnRenamed("page", "_page"),
        lambda: rows.withColumnRenamed("_txid", "txid"),
        lambda: rows.select(F.col("page").alias("_page")),
        lambda: rows.selectExpr("page as _page"),
    ]:
        with pytest.raises(DefinitionError, match="Twinstream's own"):
            use()


def test_two_columns_of_one_name_are_refused(rows):
    for use in [
        lambda: rows.select("page", F.upper("page").alias("PAGE")),
        lambda: rows.withColumnRenamed("page", "n"),
        lambda: rows.withColumns({"x": F.lit(1), "X": F.lit(2)}),
    ]:
        with pytest.raises(DefinitionError, match="two columns the name"):
            use()


def test_a_python_function_may_be_used(rows, spark):
    # Spark 4.2.0 hangs when a Python function reads columnar batches right from a Parquet scan (SPARK-58241).
    setting = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "false")
    try:
        length = F.udf(lambda text: len(text or ""), "int")
        made = rows.select("event_id", length("page").alias("length"))
        assert kept(made)[:2] == [("e1", 4), ("e2", 4)]
    finally:
        spark.conf.set(setting, before)


def prepare_with_a_function(rows):
    clean = rows.where(rows.page.isNotNull()).withColumn("page", F.upper("page"))
    return clean.select("event_id", "page", (F.lit(1) / F.col("n")).alias("share")).where("event_id <> 'e2'")


def test_a_prepare_function_runs_on_a_frame_without_marks(events, columns):
    made = compile_prepare(prepare_with_a_function, columns).apply(events.where("n <> 0 or page is null"))
    hidden = ["_txid", "_hash", "_record_id", "_batch_time", "_reason", "_kept", "_first"]
    assert made.columns == [*hidden, "event_id", "page", "share"]
    assert made.count() == 4
    assert sorted(made.where("_kept").select("event_id", "page", "share").collect()) == [
        ("e1", "HOME", 1.0),
        ("e4", "CART", 0.25),
    ]
    assert made.where("_first").count() == 4


def test_what_spark_cannot_run_is_a_definition_error(events, columns):
    for prepare, words in [
        (lambda rows: rows.where("n"), "Spark cannot run prepare"),
        (lambda rows: rows.select(F.col("nothing")), "nothing"),
        (lambda rows: rows.df, "gave back a DataFrame"),
        (lambda rows: None, "gave back a NoneType"),
        (lambda rows: rows.withColumn("x", F.lit(None)), "has no type"),
        (lambda rows: rows.withColumn("x", F.sqrt(F.col("items"))), "Spark cannot run prepare"),
    ]:
        prepared = compile_prepare(prepare, columns)
        with pytest.raises(DefinitionError) as error:
            prepared.apply(events)
        assert words in str(error.value)
