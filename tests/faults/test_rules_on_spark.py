"""The rules that only real records can show, taken out once: what a range holds, what now means, where records go."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.home import Home
from twinstream import failpoints
from twinstream.errors import AccountingOpen, DefinitionChanged, SourceChanged
from twinstream.ledger.generations import Generations
from twinstream.prepare import Prepared
from twinstream.runtime import process
from twinstream.runtime.process import SparkProcessor
from twinstream.sources.base import Slice
from twinstream.sources.files import FileSource

FIRST = {"event_id": "a", "page": "/one", "amount": "1.00", "at": "2026-01-01T00:00:00Z"}
SECOND = {"event_id": "b", "page": "/two", "amount": "2.00", "at": "2026-01-01T00:00:01Z"}
Make = Callable[[], Home]


@pytest.fixture
def make(tmp_path: Path, spark: Any) -> Make:
    """Makes homes with one file of two records."""
    made: list[Home] = []

    def new() -> Home:
        home = Home.make(tmp_path / str(len(made)), spark)
        made.append(home)
        write(home, FIRST, SECOND)
        return home

    return new


def write(home: Home, *records: dict[str, str]) -> None:
    (home.data("page_views") / "events.json").write_text("".join(json.dumps(record) + "\n" for record in records))


def plan(home: Home) -> None:
    engine = home.engine()
    definition = engine.definition("page_views")
    engine.plan(definition, engine.generation(definition, create=True))
    engine.close()


def a_file_changes_after_planning(home: Home) -> None:
    plan(home)
    write(home, FIRST, SECOND | {"amount": "3.00"})
    with pytest.raises(SourceChanged, match=r"events\.json"):
        home.drain("page_views")


def test_rule_1_a_replay_reads_what_was_planned(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    a_file_changes_after_planning(make())
    monkeypatch.setattr(FileSource, "verify", lambda self, places, range: None)
    with pytest.raises(pytest.fail.Exception):
        a_file_changes_after_planning(make())


def the_second_attempt_reads_something_else(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first attempt was processed, its staged files are lost, and the source shows other records now."""
    with monkeypatch.context() as patch:
        patch.setenv("TWINSTREAM_FAILPOINT", "sink.commit:before!error")
        failpoints._passes.clear()
        with pytest.raises(failpoints.Failed):
            home.drain("page_views")
    for file in home.folder.glob("tables/page_views/_twinstream/*/_data/*/*/*.parquet"):
        file.unlink()
    write(home, FIRST, SECOND | {"amount": "3.00"})
    with monkeypatch.context() as patch:
        patch.setattr(FileSource, "verify", lambda self, places, range: None)
        with pytest.raises(SourceChanged, match="other ones than"):
            home.drain("page_views")


def test_rule_1_a_second_attempt_reads_the_same_records(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    the_second_attempt_reads_something_else(make(), monkeypatch)
    monkeypatch.setattr(SparkProcessor, "_check", lambda self, batches, results, seen: None)
    with pytest.raises(pytest.fail.Exception):
        the_second_attempt_reads_something_else(make(), monkeypatch)


def now_is_the_time_of_the_plan(home: Home) -> None:
    home.change("page_views", "select event_id, page,", "select event_id, cast(current_timestamp() as string) page,")
    home.drain("page_views")
    planned = {datetime.fromisoformat(at["batch_time"]) for at in home.ranges("page_views")}
    assert {datetime.fromisoformat(row[0] + "Z") for row in home.read("page_views")} == planned


def test_rule_2_current_timestamp_is_the_logged_batch_time(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    now_is_the_time_of_the_plan(make())
    monkeypatch.setattr(process, "Slice", lambda txid, range, at, *rest: Slice(txid, range, at + 1_500_000, *rest))
    with pytest.raises(AssertionError):
        now_is_the_time_of_the_plan(make())


def another_definition_is_refused(home: Home) -> None:
    plan(home)
    home.change("page_views", "page is not null", "page is not null and amount > 1")
    with pytest.raises(DefinitionChanged):
        home.drain("page_views")


def test_rule_2_the_definition_is_logged_with_the_ranges(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    another_definition_is_refused(make())
    current = Generations.current
    home = make()

    def under_any_definition(self: Generations, pipeline: str) -> Any:
        found = current(self, pipeline)
        wanted = home.engine().definition(pipeline).hash
        return None if found is None else type(found)(**vars(found) | {"definition_hash": wanted})

    monkeypatch.setattr(Generations, "current", under_any_definition)
    with pytest.raises(pytest.fail.Exception):
        another_definition_is_refused(home)


def a_record_goes_astray(home: Home, how: str) -> None:
    """A planted bug in processing loses a record, or takes one twice and loses another."""
    home.change(
        "page_views",
        'prepare="select event_id, page, amount, at from events where page is not null"',
        "prepare=as_they_are",
    )
    home.change(
        "page_views", "pipeline = Pipeline(", "def as_they_are(rows):\n    return rows\n\n\npipeline = Pipeline("
    )
    apply = Prepared.apply

    def astray(self: Prepared, rows: Any) -> Any:
        some = rows.where("event_id = 'a'")
        return apply(self, some if how == "lost" else some.unionAll(some))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Prepared, "apply", astray)
        with pytest.raises(AccountingOpen):
            home.drain("page_views")


@pytest.mark.parametrize("how", ["lost", "swapped"])
def test_rule_10_every_record_is_accounted_for(make: Make, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a_record_goes_astray(make(), how)
    monkeypatch.setattr(SparkProcessor, "_check", lambda self, batches, results, seen: None)
    with pytest.raises(pytest.fail.Exception):
        a_record_goes_astray(make(), how)
