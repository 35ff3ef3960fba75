from __future__ import annotations

import textwrap

import pytest

import twinstream.engine


def test_a_sound_definition_shows_its_guarantee_part_by_part(run, write):
    write("visits")
    said = run("lint", "visits", "--json")
    (entry,) = said.data["pipelines"]
    assert said.code == 0
    assert said.data["ok"] is True
    assert entry["guarantee"]["delivery"] == "exactly-once"
    assert entry["guarantee"]["weakest"]["delivery"] == "exactly-once"
    assert [part["part"] for part in entry["guarantee"]["parts"]] == ["source", "prepare", "operator", "mode", "sink"]
    assert all(part["reason"] for part in entry["guarantee"]["parts"])
    assert entry["columns"] == {"id": "string", "page": "string", "amount": "double", "at": "timestamp"}
    assert list(entry["result"]) == ["page", "window_start", "window_end", "views"]
    assert entry["checked_by"] == "definition"


def test_people_see_the_same(run, write):
    write("visits")
    said = run("lint")
    assert said.code == 0
    assert said.out == textwrap.dedent(
        """\
        visits: ok, exactly-once end to end
          source    exactly-once  files are replayable: a range is logged and read again as it was
          prepare   exactly-once  prepare is row-wise and deterministic: a replay gives the same rows
          operator  exactly-once  partials are kept per txid and merged by an associative operator
          mode      exactly-once  micro-batches commit in txid order, fenced by epoch
          sink      exactly-once  Delta commits rows, txid and epoch in one atomic step
          weakest   none: every part delivers the same
          result    page string, window_start timestamp, window_end timestamp, views bigint
        """
    )


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({'by=["page"]': 'by=["pgae"]'}, '"pgae"'),
        ({'record_id="id"': 'record_id="ident"'}, "record_id 'ident' is not a column of the source"),
        ({'event_time="at"': 'event_time="page"'}, "is string, not timestamp"),
        ({"select id, page,": "select id, pagge as page,"}, "pagge"),
        ({"from events": "from events where rand() > 0.5"}, "rand"),
        ({'"views": count()': '"views": sum_("amount")', "import Aggregate,": "import sum_, Aggregate,"}, "decimal"),
        ({'name="visits"': 'name="Visits"'}, "'Visits' is not usable"),
        ({"1 minute": "1 fortnight"}, "1 fortnight"),
        ({"from twinstream import": "from nowhere import"}, "line 2: ModuleNotFoundError"),
    ],
)
def test_a_broken_definition_is_named_with_its_fault(run, write, changes, complaint):
    write("visits", changes)
    write("other")
    said = run("lint", "visits", "--json")
    assert said.code == 2
    assert said.data["ok"] is False
    assert said.data["pipelines"] == []
    (broken,) = said.data["broken"]
    assert broken["pipeline"] == "visits"
    assert complaint in f"{broken['error']['what']} {broken['error']['next_step']}"

    everything = run("lint")
    assert everything.code == 2
    assert "other: ok" in everything.out
    assert "visits: broken" in everything.out
    assert "Traceback" not in everything.out + everything.err


def test_an_unknown_pipeline_is_bad_input(run, write):
    write("visits")
    said = run("lint", "vists")
    assert said.code == 2
    assert said.err.startswith("Unknown pipeline: There is no pipeline 'vists'")
    assert "visits" in said.err


def test_two_pipelines_must_not_share_a_table(run, write):
    write("visits")
    write("other", {"tables/other": "tables/visits/by_page"})
    said = run("lint", "--json")
    assert said.code == 2
    assert {broken["pipeline"] for broken in said.data["broken"]} == {"visits", "other"}
    assert "overlap" in said.data["broken"][0]["error"]["what"]


def test_a_table_must_not_lie_in_a_source(run, write):
    write("visits", {"tables/visits": "data/visits/table"})
    said = run("lint", "visits", "--json")
    assert said.code == 2
    assert "would be read as new records" in said.data["broken"][0]["error"]["what"]


def test_a_file_with_another_name_than_its_pipeline_is_worth_a_warning(run, write):
    write("visits", {'name="visits"': 'name="calls"'})
    said = run("lint", "--json")
    assert said.code == 0
    assert "name it calls.py" in said.data["pipelines"][0]["warnings"][0]


def test_spark_that_cannot_be_had_is_said_of_the_pipeline_that_needs_it(run, write, monkeypatch):
    def no_java(self):
        from twinstream.errors import EnvironmentMissing

        raise EnvironmentMissing("Java was not found.")

    monkeypatch.setattr(twinstream.engine.Engine, "spark", no_java)
    write("visits")
    write("by_function", {'prepare="select id, page, amount, at from events"': "prepare=lambda rows: rows"})
    said = run("lint", "--json")
    assert said.code == 2
    assert [entry["pipeline"] for entry in said.data["pipelines"]] == ["visits"]
    assert said.data["broken"][0]["error"]["kind"] == "EnvironmentMissing"


def test_nothing_to_check_is_not_an_error(run):
    said = run("lint")
    assert said.code == 0
    assert "twinstream new NAME" in said.err


def test_deduplication_is_a_part_of_the_definition_and_of_the_guarantee(run, write):
    def with_horizon(horizon):
        write("visits", {"sink=": f"deduplicate=Deduplicate({horizon!r}), sink=", "import A": "import Deduplicate, A"})
        (entry,) = run("lint", "visits", "--json").data["pipelines"]
        return entry

    write("visits")
    without = run("lint", "visits", "--json").data["pipelines"][0]["definition"]
    day, hours, week = (with_horizon(horizon) for horizon in ("1 day", "24 hours", "1 week"))
    assert len({without, day["definition"], week["definition"]}) == 3
    assert day["definition"] == hours["definition"]
    (ids,) = [part for part in day["guarantee"]["parts"] if part["part"] == "ids"]
    assert "the same id within 1 day count once" in ids["reason"]


@pytest.mark.parametrize("horizon", ["0 days", "soon", 7])
def test_a_horizon_that_is_none_is_refused(run, write, horizon):
    write("visits", {"sink=": f"deduplicate=Deduplicate({horizon!r}), sink=", "import A": "import Deduplicate, A"})
    said = run("lint", "visits", "--json")
    assert said.code == 2
    assert "Deduplicate(horizon=" in said.data["broken"][0]["error"]["what"]
