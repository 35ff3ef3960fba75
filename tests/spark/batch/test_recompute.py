"""The batch result is the truth, and so is what is served from it and the stream, wherever the batch stands."""

from __future__ import annotations

import csv
import io
import random
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.home import Home
from twinstream.batch.layer import BatchLayer
from twinstream.batch.scope import Scope
from twinstream.batch.serve import batch_result
from twinstream.batch.table import read_table
from twinstream.cli.results import print_rows
from twinstream.errors import Refused, SourceChanged

MINUTE = 60_000_000


@pytest.fixture
def home(tmp_path: Path, spark: Any) -> Home:
    return Home.make(tmp_path / "home", spark)


def shown(rows: Any) -> list[tuple[str, ...]]:
    text = io.StringIO()
    with redirect_stdout(text):
        print_rows(rows, "csv", None)
    return sorted(tuple(row) for row in list(csv.reader(io.StringIO(text.getvalue())))[1:])


def truth(home: Home, name: str, late: str = "side") -> list[tuple[str, ...]]:
    return sorted(tuple(row) for row in home.truth(name, late).rows)


@pytest.mark.parametrize("name", ["page_views", "orders"])
def test_the_batch_result_is_the_truth(home: Home, name: str) -> None:
    home.generate(name, 900, events_per_file=100, late=0.1, poison=0.02, rate=0.5)
    home.drain(name, batch_records=300)
    layer = BatchLayer(home.engine())
    run = layer.recompute(name)
    late = layer.engine.definition(name).late
    assert shown(layer.read_batch(name)) == truth(home, name, late)
    counted = home.accounting(name).values()
    assert run.result is not None
    assert run.result["records"] == sum(found["emitted"] + found["late"] for found in counted)
    assert run.result["late_records"] == sum(found["late"] for found in counted)


def test_with_late_records_counted_it_is_what_keeping_them_would_give(home: Home) -> None:
    home.generate("page_views", 600, events_per_file=100, late=0.2, rate=0.5)
    home.drain("page_views", batch_records=200)
    layer = BatchLayer(home.engine())
    run = layer.recompute("page_views")
    assert run.folder is not None
    rows = read_table(home.spark, home.folder / run.folder / "with_late").drop("_state")
    assert shown(rows) == truth(home, "page_views", "keep")
    assert shown(rows) != truth(home, "page_views")


@pytest.mark.parametrize("name", ["page_views", "orders"])
def test_serving_is_right_wherever_the_batch_stands(home: Home, name: str, seed: int) -> None:
    """Drains, folds and recomputations in any order, the batch at any frontier: always the one right answer."""
    chance = random.Random(seed)
    layer = BatchLayer(home.engine())
    late = layer.engine.definition(name).late
    for turn in range(4):
        home.generate(name, 200, events_per_file=50, late=0.1, rate=0.5, seed=100 + turn)
        home.drain(name, batch_records=chance.choice([50, 100, 200]))
        for step in chance.sample(["fold", "recompute", "nothing"], 2):
            if step == "fold":
                layer.engine.fold(name)
            elif step == "recompute" or turn == 0:
                generation = layer.engine.generation(layer.engine.definition(name))
                layer.recompute(name, chance.randint(1, generation.frontier))
        if layer.newest(name) is not None:
            assert shown(layer.read_serving(name)) == truth(home, name, late), f"turn {turn}"


def test_a_scope_limits_both_time_and_keys(home: Home) -> None:
    home.generate("page_views", 600, events_per_file=100, rate=0.5)
    home.drain("page_views", batch_records=300)
    layer = BatchLayer(home.engine())
    rows = truth(home, "page_views", "keep")
    page, start = rows[len(rows) // 2][0], rows[len(rows) // 2][1]
    moment = home.spark.sql(f"select unix_micros(timestamp '{start}')").first()[0]
    run = layer.recompute("page_views", scope=Scope(moment + 1, moment + MINUTE, {"page": page}))
    expected = [row for row in rows if row[0] == page and row[1] == start]
    assert shown(batch_result(home.spark, home.folder, run)) == expected
    assert layer.newest("page_views") is None, "a part is never served as the whole"


def test_a_frontier_that_is_not_committed_is_refused(home: Home) -> None:
    home.generate("page_views", 100, events_per_file=100)
    home.drain("page_views")
    layer = BatchLayer(home.engine())
    with pytest.raises(Refused, match="not committed"):
        layer.recompute("page_views", 2)
    with pytest.raises(Refused, match="no key"):
        layer.recompute("page_views", scope=Scope(keys={"colour": "red"}))
    with pytest.raises(Refused, match="no batch result"):
        layer.read_serving("page_views")


def test_a_source_that_changed_is_named(home: Home) -> None:
    home.generate("page_views", 300, events_per_file=100)
    home.drain("page_views", batch_records=100)
    sorted(home.data("page_views").glob("*.json"))[1].unlink()
    layer = BatchLayer(home.engine())
    with pytest.raises(SourceChanged, match=r"1 txids can no longer be proven from the source \(2\)"):
        layer.recompute("page_views")
    run = layer.recompute("page_views", accept_changes=True)
    assert run.result is not None
    assert list(run.result["changed"]) == ["2"]
    assert layer.newest("page_views") is None, "it is not served"


def test_old_batch_results_are_cleaned_but_for_those_of_use(home: Home) -> None:
    home.generate("page_views", 300, events_per_file=100)
    home.drain("page_views", batch_records=100)
    layer = BatchLayer(home.engine())
    runs = [layer.recompute("page_views", frontier) for frontier in (1, 2, 3)]
    assert layer.clean("page_views", 3600) == 0, "they are young"
    assert layer.clean("page_views", 0) == 2
    there = [run.folder is not None and (home.folder / run.folder).exists() for run in runs]
    assert there == [False, False, True]
    assert shown(layer.read_serving("page_views")) == truth(home, "page_views")
    assert layer.clean("page_views", 0) == 0
