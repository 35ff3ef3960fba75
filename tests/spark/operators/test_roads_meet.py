"""full(all rows) = present(merge(partials)): for every measure, every column type, any split and any tree of merges."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.spark.operators.draws import KINDS, Kind, draw_table
from tests.spark.operators.roads import batch, merged_at_once, merged_by_tree, shown, stored_partials
from twinstream.operators import (
    Aggregate,
    Append,
    Measure,
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

FAMILIES = {
    "integers": ["tiny", "small", "int", "big"],
    "decimals": ["dec7", "dec12", "dec18", "dec28", "frac28", "dec38"],
    "texts": ["str", "bin", "bool", "texts", "pair"],
    "times": ["date", "time", "ntz", "float", "double", "floats"],
}


def every_measure(kinds: dict[str, Kind]) -> dict[str, Measure]:
    """All measures that the columns' types allow."""
    measures = {"rows": count()}
    for name, kind in kinds.items():
        made = [count, min_, max_, first, last]
        made += [sum_, avg] if kind.numeric else []
        made += [approx_distinct] if kind.plain else []
        measures |= {f"{make.__name__}{name}": make(name) for make in made}
    return measures


def assert_roads_meet(operator, table, spark, folder, seed, merges=("at once", "by tree")):
    rows = table.frame(spark)
    operator.check(table.columns)
    expected = batch(operator, rows)
    partials = stored_partials(operator, rows, folder)
    results = list(operator.result_columns(table.columns).items())
    states = list(operator.state_columns(table.columns).items())
    assert expected.dtypes == results
    assert partials.dtypes == [("_txid", "bigint"), *states]

    truth = shown(expected)
    assert truth, "the draw kept no row"
    for way in merges:
        merged = merged_at_once(operator, partials) if way == "at once" else merged_by_tree(operator, partials, seed)
        assert merged.dtypes == states
        assert operator.present(merged).dtypes == results
        assert shown(operator.present(merged)) == truth, f"merged {way}, seed {seed}"


@pytest.mark.parametrize("window", [None, fixed("1 minute")], ids=["no window", "window"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_measure_of_every_type(spark, tmp_path, seed, family, window):
    kinds = {name: KINDS[name] for name in FAMILIES[family]}
    table = draw_table(kinds, seed)
    merges = ("by tree",) if window else ("at once",)
    assert_roads_meet(Aggregate(["case"], window, every_measure(kinds)), table, spark, tmp_path, seed, merges)


@pytest.mark.parametrize(
    "keys", [["str", "double"], ["float", "dec28", "time"], ["pair", "floats"], ["texts", "bin", "date", "bool"]]
)
def test_every_type_of_key(spark, tmp_path, seed, keys):
    kinds = {name: KINDS[name] for name in {*keys, "int"}}
    operator = Aggregate(keys, fixed("1 hour"), {"rows": count(), "total": sum_("int"), "same": max_(keys[0])})
    assert_roads_meet(operator, draw_table(kinds, seed), spark, tmp_path, seed)


def test_without_keys(spark, tmp_path, seed):
    table = draw_table({"int": KINDS["int"], "str": KINDS["str"]}, seed)
    measures = {"rows": count(), "total": sum_("int"), "mean": avg("int"), "end": last("str")}
    assert_roads_meet(Aggregate(measures=measures), table, spark, tmp_path, seed)
    assert_roads_meet(Aggregate(window=fixed("7 days"), measures=measures), table, spark, tmp_path, seed)


def test_names_that_need_quoting(spark, tmp_path, seed):
    table = draw_table({"a.b": KINDS["int"], "a b": KINDS["str"]}, seed)
    operator = Aggregate(["a.b"], None, {"x.y": sum_("a.b"), "m.m": avg("a.b"), "f f": first("a b")})
    assert_roads_meet(operator, table, spark, tmp_path, seed)


def test_append(spark, tmp_path, seed):
    table = draw_table({name: KINDS[name] for name in ("str", "double", "dec12", "time", "pair")}, seed)
    assert_roads_meet(Append(), table, spark, tmp_path, seed)


@settings(max_examples=4)
@given(
    names=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=2, unique=True),
    keyed=st.booleans(),
    length=st.one_of(st.none(), st.integers(1, 10**13)),
    case_seed=st.integers(0, 2**32),
)
def test_any_definition(spark, tmp_path_factory, names, keyed, length, case_seed):
    kinds = {name: KINDS[name] for name in names}
    window = fixed(f"{length} microseconds") if length else None
    operator = Aggregate(names[:1] if keyed else [], window, every_measure(kinds))
    table = draw_table(kinds, case_seed, cases=8)
    assert_roads_meet(operator, table, spark, tmp_path_factory.mktemp("any"), case_seed)
