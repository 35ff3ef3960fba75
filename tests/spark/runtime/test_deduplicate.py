"""Deduplicate: the first record of an id counts, across txids, files, groups and attempts, and the batch agrees."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.commands import Commands
from tests.e2e.events import event, write_json, write_parquet
from tests.e2e.home import Home, assert_true
from tests.spark.batch.looks import counts, reconcile
from tests.spark.runtime.test_definition import WORDS
from twinstream.reconcile.result import Difference, Verdict
from twinstream.runtime.ids.known import IdFile, KnownIds
from twinstream.runtime.ids.records import Records
from twinstream.runtime.ids.segment import Segment
from twinstream.runtime.process import SparkProcessor

START = datetime(2026, 1, 1, tzinfo=UTC)
FILES, EACH = 6, 40
SPLIT = "spark.sql.files.maxPartitionBytes"


@pytest.fixture(autouse=True)
def _split_files(spark: Any) -> Iterator[None]:
    """Spark reads a file in several pieces, as it does with large ones."""
    before = spark.conf.get(SPLIT)
    spark.conf.set(SPLIT, "2500b")
    yield
    spark.conf.set(SPLIT, before)


def drawn(chance: random.Random, file: int, broken: bool) -> list[dict[str, Any]]:
    """Records of few ids, near the time of their file or long before it, some of them dead letters or filtered."""
    records = []
    for _ in range(EACH):
        minutes = file * 10 + chance.choice([0, 1, 2, 3, -10, -20, -40])
        at = START + timedelta(minutes=minutes, microseconds=chance.choice([0, 0, 1]))
        record: dict[str, Any] = {
            "event_id": f"e{chance.randrange(60)}",
            "page": chance.choice(["/a", "/b", "/c", None]),
            "amount": f"{chance.randrange(100)}.25",
            "at": at.isoformat().replace("+00:00", "Z"),
        }
        if broken and chance.random() < 0.1:
            record |= chance.choice([{"amount": "much"}, {"at": "2999-01-01T00:00:00Z"}, {"event_id": None}])
        records.append(record)
    return records


def made(folder: Path, spark: Any, late: str, chance: random.Random, form: str = "json") -> Home:
    home = Home.make(folder, spark)
    home.deduplicate("page_views", "20 minutes")
    home.change("page_views", 'late="side"', f'late="{late}"')
    if form == "parquet":
        home.change("page_views", 'format="json"', 'format="parquet"')
    for file in range(FILES):
        records = drawn(chance, file, broken=form == "json")
        write_json(home.folder / "as-json" / f"{file:02}.json", records)
        target = home.data("page_views") / f"{file:02}.{form}"
        if form == "parquet":
            write_parquet(target, records)
        else:
            write_json(target, records)
        if form == "json" and file % 3 == 0:  # a blank line: Spark's fast reader does not see it
            target.write_text("\n" + target.read_text())
    return home


@pytest.mark.parametrize(("late", "form"), [("keep", "json"), ("side", "json"), ("drop", "parquet")])
def test_the_first_record_of_an_id_counts(tmp_path: Path, spark: Any, seed: int, late: str, form: str) -> None:
    results = []
    for group in (1, 100):
        home = made(tmp_path / str(group), spark, late, random.Random(seed), form)
        home.drain("page_views", batch_records=2 * EACH, group=group, max_batches=2)
        home.drain("page_views", batch_records=2 * EACH, group=group)
        assert_true(home, "page_views", late)
        results.append((home.read("page_views"), home.accounting("page_views")))
    assert results[0] == results[1]
    counted = results[0][1].values()
    assert sum(one["duplicate"] for one in counted) > FILES
    assert (sum(one["late"] for one in counted) > 0) == (late != "keep")
    assert reconcile(home).verdict is Verdict.EQUAL


def test_without_a_window_the_batch_agrees_too(tmp_path: Path, spark: Any, seed: int) -> None:
    home = made(tmp_path, spark, "drop", random.Random(seed))
    home.change("page_views", 'window=fixed("1 minute"), ', "")
    home.drain("page_views", batch_records=2 * EACH, group=2)
    counted = home.accounting("page_views").values()
    assert sum(one["duplicate"] for one in counted) > FILES
    assert sum(one["late"] for one in counted) > 0
    assert reconcile(home).verdict is Verdict.EQUAL


def test_rows_that_stand_for_themselves_are_deduplicated_too(tmp_path: Path, spark: Any, seed: int) -> None:
    home = Home.make(tmp_path, spark)
    home.deduplicate("orders", "1 day")
    home.generate("orders", 600, events_per_file=100, late=0.05, poison=0.02, duplicates=0.2, rate=0.02, seed=seed)
    home.drain("orders", batch_records=200, group=2)
    assert_true(home, "orders", "drop")
    assert sum(one["duplicate"] for one in home.accounting("orders").values()) > 50
    assert reconcile(home, "orders").verdict is Verdict.EQUAL


def test_records_that_explode_are_deduplicated_as_records(commands: Commands) -> None:
    home = commands.home
    (home.pipelines / "words.py").write_text(
        WORDS.replace("    sink=", '    deduplicate=Deduplicate("1 day"),\n    sink=').replace(
            "import A", "import Deduplicate, A"
        )
    )
    record = {"id": "r", "words": ["a", "b", "a"], "at": "2026-01-01T00:00:00Z"}
    write_json(home.data("words") / "0.json", [record, record, {**record, "id": "s", "words": []}])
    write_json(home.data("words") / "1.json", [record, {**record, "id": "s"}, {**record, "id": "t"}])
    commands.good("drain", "words", "--batch-records", "3", "--wait", "0")
    assert home.read("words") == [("a", "4"), ("b", "2")]
    counted = home.accounting("words")
    assert [(found["emitted"], found["filtered"], found["duplicate"]) for found in counted.values()] == [
        (1, 1, 1),
        (1, 0, 2),
    ]
    assert reconcile(home, "words").verdict is Verdict.EQUAL


def test_two_ids_with_one_hash_are_two_records(
    tmp_path: Path, spark: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import functions as F

    monkeypatch.setattr(Records, "_hash", lambda self: F.lit(7).cast("bigint"))
    home = made(tmp_path, spark, "side", random.Random(seed))
    home.drain("page_views", batch_records=2 * EACH, group=2)
    assert_true(home, "page_views", "side")


def test_a_larger_group_is_looked_at_in_slices(
    tmp_path: Path, spark: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twinstream.runtime.ids.suspects.SLICE_IDS", 40)
    home = made(tmp_path, spark, "keep", random.Random(seed))
    home.drain("page_views", batch_records=2 * EACH, group=3)
    assert_true(home, "page_views", "keep")


def test_what_is_brought_back_counts_if_it_did_not_count_before(commands: Commands, tmp_path: Path) -> None:
    home = commands.home
    home.deduplicate("page_views", "1 day")
    dead = event(900, amount="a lot")
    write_json(home.data("page_views") / "0.json", [event(1), event(40), dead])
    write_json(home.data("page_views") / "1.json", [event(2), event(41), event(1)])
    commands.good("drain", "page_views", "--batch-records", "3", "--wait", "0")
    counted = home.accounting("page_views")
    assert (counted[1]["dead"], counted[2]["late"], counted[2]["duplicate"]) == (1, 1, 1)
    late, mended = tmp_path / "late.json", tmp_path / "mended.json"
    commands.good("late", "page_views", "--export", str(late))
    write_json(mended, [event(900), event(41, amount="1.00")])
    for file in (late, mended):
        commands.good("reinject", "page_views", str(file))
    commands.good("drain", "page_views", "--wait", "0")
    assert_true(home, "page_views", "side")
    counted = home.accounting("page_views")
    assert (counted[3]["emitted"], counted[4]["emitted"], counted[4]["duplicate"]) == (1, 1, 1)


def test_a_discarded_txid_makes_no_duplicates(commands: Commands) -> None:
    home = commands.home
    home.deduplicate("page_views", "1 day")
    home.change("page_views", "pipeline = Pipeline(", GATE)
    home.change("page_views", "    sink=", "    gate=gate,\n    sink=")
    write_json(home.data("page_views") / "0.json", [event(1)])
    write_json(home.data("page_views") / "1.json", [event(2, page="/bad"), event(3)])
    write_json(home.data("page_views") / "2.json", [event(1), event(2), event(3), event(3)])
    commands.run("drain", "page_views", "--batch-records", "1", "--wait", "0")
    commands.good("discard", "page_views", "--txid", "2", "--reason", "a test")
    commands.good("drain", "page_views", "--wait", "0")
    assert_true(home, "page_views", "side")
    counted = home.accounting("page_views")
    assert (counted[2]["discarded"], counted[3]["emitted"], counted[3]["duplicate"]) == (2, 2, 2)
    assert reconcile(home).verdict is Verdict.EQUAL


GATE = """def gate(rows):
    return "a bad page" if rows.where("page = '/bad'").count() else None


pipeline = Pipeline("""


def test_ids_are_known_whatever_was_folded_cleaned_and_lost(commands: Commands) -> None:
    import shutil

    home = commands.home
    home.deduplicate("page_views", "1 day")
    for number in range(3):
        write_json(home.data("page_views") / f"{number}.json", [event(number), event(0)])
        commands.good("drain", "page_views", "--wait", "0")
        commands.good("fold", "page_views")
        commands.good("clean", "page_views", "--retain", "0", "--grace", "0")
        for folder in home.folder.glob("tables/page_views/_twinstream/g*/_ids"):
            shutil.rmtree(folder)
    assert_true(home, "page_views", "side")
    assert [one["duplicate"] for one in home.accounting("page_views").values()] == [1, 1, 1]


def test_the_source_is_read_once_whether_duplicates_are_expected_or_not(
    tmp_path: Path, spark: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = made(tmp_path, spark, "keep", random.Random(seed))
    done: list[str] = []

    def noticed(what: str, method: Any) -> Any:
        def noting(*given: Any, **named: Any) -> Any:
            done.append(what)
            return method(*given, **named)

        return noting

    monkeypatch.setattr(Records, "put_down", noticed("put down", Records.put_down))
    monkeypatch.setattr(SparkProcessor, "_stage", noticed("staged", SparkProcessor._stage))
    home.drain("page_views", batch_records=2 * EACH, group=1, max_batches=1)
    assert done == ["put down", "staged", "staged"], "none was expected, so the group was staged once more"
    done.clear()
    home.drain("page_views", batch_records=2 * EACH, group=1)
    assert done == ["put down", "staged"] * 2, "the ledger knows of duplicates"
    assert_true(home, "page_views", "keep")


def test_a_filter_that_overlooks_an_id_is_found_by_reconciliation(
    tmp_path: Path, spark: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = made(tmp_path, spark, "keep", random.Random(seed))
    with monkeypatch.context() as patched:
        patched.setattr(Segment, "found", lambda self, wanted: wanted.hashes[:0])
        home.drain("page_views", batch_records=2 * EACH, group=2)
    result = reconcile(home)
    assert result.verdict is Verdict.DIFFERENT
    assert set(counts(result)) <= {Difference.MISMATCHED, Difference.PHANTOM}
    assert {one.txid for one in result.txids} == {3}, "the first group had nothing before it to overlook"


def test_ids_of_an_attempt_that_was_not_committed_are_found_by_reconciliation(
    tmp_path: Path, spark: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = made(tmp_path, spark, "keep", random.Random(seed))
    home.drain("page_views", batch_records=2 * EACH, group=2, max_batches=2)
    committed = KnownIds._committed

    def and_staged(self: KnownIds, before: int) -> list[IdFile]:
        """What a zombie has staged for the txids that come next, too."""
        found = committed(self, before)
        staged = [path for path in self.table.rglob("_kind=ids/*.parquet") if "zombie" in path.parts]
        return [*found, *(self._look(path.relative_to(self.table).as_posix()) for path in staged)]

    other = made(tmp_path / "zombie-home", spark, "keep", random.Random(seed))
    other.drain("page_views", batch_records=2 * EACH, group=100)
    (table,) = home.folder.glob("tables/page_views/_twinstream/g*")
    (ids,) = other.folder.glob("tables/page_views/_twinstream/g*/_data/*/ids")
    (table / "_data" / "zombie").mkdir()
    ids.rename(table / "_data" / "zombie" / "ids")
    with monkeypatch.context() as patched:
        patched.setattr(KnownIds, "_committed", and_staged)
        home.drain("page_views", batch_records=2 * EACH, group=2)
    result = reconcile(home)
    assert result.verdict is Verdict.DIFFERENT
    assert Difference.MISSING in counts(result)
    assert min(one.txid for one in result.txids) == 3
