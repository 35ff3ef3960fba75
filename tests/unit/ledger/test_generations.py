"""Generations: one current life of a pipeline, built, promoted and adopted in single steps."""

from __future__ import annotations

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from tests.unit.ledger.bench import Bench
from tests.unit.ledger.workers import at_once, build_generation, open_generation
from twinstream.errors import Fenced, Refused
from twinstream.ledger import Ledger
from twinstream.ledger.generations import BUILDING, CURRENT, RETIRED
from twinstream.ledger.schema import generations


def test_a_pipeline_has_no_generation_until_it_is_opened(ledger: Ledger) -> None:
    assert ledger.generations.current("page_views") is None
    opened = ledger.generations.open("page_views", "hash", '{"a":1}')
    assert (opened.number, opened.state, opened.last_txid, opened.frontier) == (1, CURRENT, 0, 0)
    assert ledger.generations.current("page_views") == opened == ledger.generations.get(opened.id)
    assert opened.name == f"g1-{opened.uid}"


def test_opening_again_gives_the_same_generation_whatever_the_definition(ledger: Ledger) -> None:
    first = ledger.generations.open("page_views", "one", "{}")
    assert ledger.generations.open("page_views", "two", "{}") == first


def test_pipelines_do_not_share_generations(ledger: Ledger) -> None:
    one, two = (ledger.generations.open(name, "hash", "{}") for name in ("orders", "page_views"))
    assert one.id != two.id
    assert (one.number, two.number) == (1, 1)
    assert ledger.generations.of("orders") == [one]


def test_opened_at_once_by_several_processes_there_is_one_generation(ledger_url: str) -> None:
    """The ledger itself is new, too: they also race for making its tables."""
    found = at_once(open_generation, ledger_url)
    assert len(set(found)) == 1
    ledger = Ledger.open(ledger_url)
    assert len(ledger.generations.of("page_views")) == 1
    ledger.close()


def test_a_generation_is_built_beside_the_current_one(ledger: Ledger) -> None:
    current = ledger.generations.open("page_views", "old", "{}")
    built = ledger.generations.build("page_views", "new", "{}")
    assert (built.number, built.state) == (2, BUILDING)
    assert ledger.generations.build("page_views", "new", "{}") == built
    assert ledger.generations.current("page_views") == current


def test_a_half_built_generation_gives_way_to_another_definition(ledger: Ledger) -> None:
    ledger.generations.open("page_views", "old", "{}")
    ledger.generations.build("page_views", "new", "{}")
    newer = ledger.generations.build("page_views", "newer", "{}")
    assert (newer.number, newer.definition_hash) == (3, "newer")
    assert [g.state for g in ledger.generations.of("page_views")] == [CURRENT, RETIRED, BUILDING]


def test_builders_of_different_definitions_at_once_each_get_their_own(ledger_url: str) -> None:
    ledger = Ledger.open(ledger_url)
    ledger.generations.open("page_views", "old", "{}")
    found = at_once(build_generation, ledger_url)
    assert sorted(found) == [(f"hash {n}", f"hash {n}") for n in range(4)]
    built = ledger.generations.of("page_views")[1:]
    assert [g.number for g in built] == [2, 3, 4, 5]
    assert [g.state for g in built].count(BUILDING) == 1
    ledger.close()


def test_promoting_swaps_the_pointer_and_fences_the_old_runner(bench: Bench) -> None:
    bench.plan("a.json")
    old_lease = bench.lease("old")
    bench.commit(old_lease, 1, 1)
    bench.plan("b.json")
    new = _built(bench, "a.json")
    bench.ledger.generations.promote(bench.ledger.generations.get(new.id))
    current = bench.ledger.generations.current("page_views")
    assert current is not None
    assert current.id == new.id
    assert [g.state for g in bench.ledger.generations.of("page_views")] == [RETIRED, CURRENT]
    with pytest.raises(Fenced):
        bench.start(old_lease, 2, 2)
    with pytest.raises(Fenced):
        bench.ledger.leases.renew(old_lease)
    assert ("promoted", None) in new.journal()


def test_a_generation_that_is_behind_is_not_promoted(bench: Bench) -> None:
    bench.plan("a.json", "b.json", "c.json")
    bench.commit(bench.lease(), 1, 2)
    new = _built(bench, "a.json")
    new.plan("b.json")
    with pytest.raises(Refused, match="1 of its files are not committed"):
        new.ledger.generations.promote(new.generation)
    assert [g.state for g in bench.ledger.generations.of("page_views")] == [CURRENT, BUILDING]
    bench.ledger.leases.renew(bench.lease_again())
    new.commit(new.lease_again(), 2, 2)
    new.ledger.generations.promote(new.generation)
    assert [g.state for g in bench.ledger.generations.of("page_views")] == [RETIRED, CURRENT]


def test_only_a_generation_that_is_being_built_is_promoted(bench: Bench) -> None:
    bench.plan("a.json")
    bench.commit(bench.lease(), 1, 1)
    new = _built(bench, "a.json")
    built = new.generation
    bench.ledger.generations.promote(built)
    with pytest.raises(Refused, match="not being built"):
        bench.ledger.generations.promote(built)
    assert [g.state for g in bench.ledger.generations.of("page_views")] == [RETIRED, CURRENT]


def test_an_adopted_generation_becomes_the_current_one(ledger: Ledger) -> None:
    """A ledger restored from an old backup has generation 1, the sink has 3 already."""
    old = ledger.generations.open("page_views", "old", "{}")
    lease = ledger.leases.acquire(old.id, "old", 60)
    adopted = ledger.generations.adopt("page_views", 3, "abcd", "new", "{}")
    assert (adopted.number, adopted.name, adopted.state) == (3, "g3-abcd", CURRENT)
    assert ledger.generations.current("page_views") == adopted
    assert [(g.number, g.state) for g in ledger.generations.of("page_views")] == [(1, RETIRED), (3, CURRENT)]
    with pytest.raises(Fenced):
        ledger.leases.renew(lease)
    assert ledger.generations.build("page_views", "newer", "{}").number == 4


def test_the_database_itself_refuses_a_second_current_generation(ledger: Ledger) -> None:
    ledger.generations.open("page_views", "hash", "{}")
    with pytest.raises(IntegrityError), ledger.database.write("test") as connection:
        connection.execute(
            insert(generations).values(
                pipeline="page_views",
                number=2,
                uid="x",
                state=CURRENT,
                definition_hash="h",
                definition="",
                created_at=0,
            )
        )


def test_the_rate_is_kept_for_the_next_run(ledger: Ledger) -> None:
    opened = ledger.generations.open("page_views", "hash", "{}")
    assert opened.bytes_per_second is None
    ledger.generations.note_rate(opened.id, 1234.5)
    assert ledger.generations.get(opened.id).bytes_per_second == 1234.5


def _built(bench: Bench, *committed: str) -> Bench:
    """A second generation with some files committed."""
    built = bench.ledger.generations.build("page_views", "new", "{}")
    new = Bench(bench.ledger, bench.clock, built)
    new.plan(*committed)
    new.commit(new.lease("new"), 1, len(committed))
    return new
