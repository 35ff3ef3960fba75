"""The definition end to end: prepare as a function and with explode; what is a change and what is not."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.commands import Commands
from tests.e2e.events import EACH, event, write_files, write_json
from tests.e2e.home import assert_true
from tests.faults.processes import Command

DRAIN = ("drain", "page_views", "--batch-records", str(EACH), "--wait", "0")
SQL = 'prepare="select event_id, page, amount, at from events where page is not null"'
FUNCTION = """
def with_page(rows):
    return rows.where("page is not null").select("event_id", "page", "amount", "at")
"""
WORDS = """
from twinstream import Aggregate, DeltaSink, FileSource, Pipeline, count

pipeline = Pipeline(
    name="words",
    source=FileSource("data/words", schema="id string, words array<string>, at timestamp"),
    record_id="id",
    event_time="at",
    prepare="select id, explode(words) as word from events",
    operator=Aggregate(by=["word"], measures={"times": count()}),
    sink=DeltaSink("tables/words"),
)
"""


def test_a_function_gives_what_the_same_sql_gives(commands: Commands) -> None:
    home = commands.home
    home.change("page_views", "pipeline = Pipeline(", f"{FUNCTION}\n\npipeline = Pipeline(")
    home.change("page_views", SQL, "prepare=with_page")
    paths = write_files(home)
    write_json(paths[1], [event(number, page=None if number % 2 else "/x") for number in range(EACH)])
    commands.good(*DRAIN)
    assert_true(home, "page_views", "side")
    assert home.accounting("page_views")[2]["filtered"] == EACH // 2


def test_records_that_explode_are_accounted_for_once(commands: Commands) -> None:
    home = commands.home
    (home.pipelines / "words.py").write_text(WORDS)
    texts = [["a", "b", "a"], [], ["b"], None, ["a"]]
    records = [{"id": f"r{n}", "words": words, "at": "2026-01-01T00:00:00Z"} for n, words in enumerate(texts)]
    write_json(home.data("words") / "0.json", records[:3])
    write_json(home.data("words") / "1.json", records[3:])
    commands.good("drain", "words", "--batch-records", "3", "--wait", "0")
    assert home.read("words") == [("a", "3"), ("b", "2")]
    counted = home.accounting("words")
    assert [(found["read"], found["emitted"], found["filtered"]) for found in counted.values()] == [
        (3, 2, 1),
        (2, 1, 1),
    ]


def test_a_change_of_the_result_waits_for_replay_and_a_change_of_the_layout_does_not(
    commands: Commands, tmp_path: Path
) -> None:
    home = commands.home
    paths = write_files(home)
    write_json(paths[2], [event(700, at="2026-01-01T00:00:00Z"), *(event(number) for number in range(60, 70))])
    commands.good(*DRAIN)
    before = home.read("page_views")

    home.change("page_views", "pipeline = Pipeline(", "# Another word.\npipeline = Pipeline(")
    home.change("page_views", "from events where page is not null", "from  events  WHERE page is not null -- really")
    home.change("page_views", "batch_records=100_000", "batch_records=7")
    home.change("page_views", 'owner="web"', 'owner="shop"')
    assert commands.good(*DRAIN).err.startswith("Nothing to do")
    assert home.read("page_views") == before

    home.change("page_views", 'late="side"', 'late="keep"')
    for command in (DRAIN, ("read", "page_views"), ("fold", "page_views")):
        error = commands.bad(*command, kind="DefinitionChanged", code=1)
        assert "twinstream replay page_views" in error["next_step"]
    commands.good("replay", "page_views")
    assert_true(home, "page_views", "keep")
    assert home.read("page_views") != before
    assert commands.good(*DRAIN).err.startswith("Nothing to do")


def test_a_second_drain_changes_nothing_and_needs_no_java(commands: Commands, tmp_path: Path) -> None:
    home = commands.home
    write_files(home, 1)
    commands.good(*DRAIN)
    before = home.read("page_views")
    environment = {
        "TWINSTREAM_HOME": str(home.folder),
        "TWINSTREAM_PIPELINES": str(home.pipelines),
        "TWINSTREAM_MASTER": "local[1]",
        "TWINSTREAM_FAILPOINT": "",
        "PATH": str(tmp_path),
        "JAVA_HOME": "",
    }
    again = Command(home.folder, [*DRAIN, "--json"], environment).wait(60)
    assert again.code == 0, again.err
    said = again.json()
    assert (said["txids"], said["frontier"], said["epoch"]) == (0, 1, None)
    assert said["seconds"] < 10
    assert not (home.folder / "logs").exists(), "Spark was not even tried"
    assert home.read("page_views") == before
