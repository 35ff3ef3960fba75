"""What an operator says about itself without Spark."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

from twinstream.operators import Aggregate, Append, Operator, avg, count, first, fixed, sum_

COLUMNS = {"page": "string", "amount": "decimal(12,2)", "n": "bigint"}
VIEWS = Aggregate(
    by=["page"],
    window=fixed("1 minute"),
    measures={"views": count(), "spend": sum_("amount"), "mean": avg("n"), "opener": first("page")},
)


def test_operators_are_operators():
    assert isinstance(VIEWS, Operator)
    assert isinstance(Append(), Operator)
    assert not VIEWS.stateless
    assert Append().stateless


def test_importing_operators_does_not_import_spark():
    code = "import sys, twinstream.operators; sys.exit(any(name.split('.')[0] == 'pyspark' for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_result_columns_are_keys_window_and_measures():
    assert list(VIEWS.result_columns(COLUMNS).items()) == [
        ("page", "string"),
        ("window_start", "timestamp"),
        ("window_end", "timestamp"),
        ("views", "bigint"),
        ("spend", "decimal(38,2)"),
        ("mean", "decimal(38,4)"),
        ("opener", "string"),
    ]


def test_state_columns_are_keys_window_start_and_one_state_per_measure():
    assert list(VIEWS.state_columns(COLUMNS).items()) == [
        ("page", "string"),
        ("window_start", "timestamp"),
        ("views", "bigint"),
        ("spend", "decimal(38,2)"),
        ("mean", "struct<sum:decimal(38,0),count:bigint>"),
        ("opener", "struct<at:timestamp,id:string,hash:bigint,value:string>"),
    ]


def test_append_stores_the_event_time_and_shows_the_rest():
    assert list(Append().state_columns(COLUMNS)) == ["_event_time", "page", "amount", "n"]
    assert Append().result_columns(COLUMNS) == COLUMNS


def test_the_canonical_form_is_json_and_tells_every_change_of_results():
    changed = [
        Append(),
        VIEWS,
        Aggregate(by=["page"], measures=dict(VIEWS.measures)),
        Aggregate(by=["page"], window=fixed("2 minutes"), measures=dict(VIEWS.measures)),
        Aggregate(by=["n"], window=fixed("1 minute"), measures=dict(VIEWS.measures)),
        Aggregate(by=["page"], window=fixed("1 minute"), measures=dict(reversed(VIEWS.measures))),
        Aggregate(by=["page"], window=fixed("1 minute"), measures={"views": count("page")}),
        Aggregate(by=["page"], window=fixed("1 minute"), measures={"views": count()}),
        Aggregate(by=["page"], window=fixed("1 minute"), measures={"seen": count()}),
    ]
    assert len({json.dumps(operator.canonical(), sort_keys=True) for operator in changed}) == len(changed)
    again = Aggregate(by=("page",), window=fixed("60 seconds"), measures=dict(VIEWS.measures))
    assert again.canonical() == VIEWS.canonical()


def test_operators_are_values():
    again = Aggregate(by=("page",), window=fixed("60 seconds"), measures=dict(VIEWS.measures))
    assert again == VIEWS
    assert hash(again) == hash(VIEWS)
    assert pickle.loads(pickle.dumps(VIEWS)) == VIEWS
    assert Aggregate(by=["n"], measures={"views": count()}) != Aggregate(by=["n"], measures={"views": count("n")})
