"""A new generation is proven before readers see it, and compared with the one that it takes the place of."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import functions as F

from tests.e2e.home import Home, assert_true
from tests.spark.batch.damage import table_of
from twinstream.engine import DrainRequest
from twinstream.errors import Refused
from twinstream.operators import Aggregate
from twinstream.reconcile.replay import Replayer
from twinstream.reconcile.result import Difference, Verdict
from twinstream.runtime.progress import Progress

ONE_GO = DrainRequest(wait_seconds=0)


def test_a_changed_definition_is_built_proven_compared_and_promoted(home: Home) -> None:
    home.engine().fold("page_views")
    before = table_of(home, "page_views").folder
    home.change("page_views", 'late="side"', 'late="keep"')
    replayer = Replayer(home.engine(), Progress())
    built = replayer.replay("page_views", ONE_GO, promote=False)
    assert built.generation.state == "building"
    assert table_of(home, "page_views").folder == before, "readers see the old one"
    assert built.proof.verdict is Verdict.EQUAL
    assert built.against is not None
    assert built.against.counts[Difference.MISSING] == built.against.counts[Difference.DUPLICATED] == 0
    assert not built.against.equal, "what was late counts now"
    done = replayer.replay("page_views", ONE_GO)
    assert (done.generation.id, done.generation.state) == (built.generation.id, "current")
    assert_true(home, "page_views", "keep")
    assert before.is_dir(), "the old one stays until it is dropped"
    engine = home.engine()
    with pytest.raises(Refused, match="is current"):
        engine.drop("page_views", done.generation.number)
    engine.drop("page_views", 1)
    assert not before.exists()
    assert_true(home, "page_views", "keep")


def test_what_is_not_what_the_batch_says_is_not_promoted(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Aggregate.partial

    def wrong(self: Any, rows: Any, by: Any, extra: Any) -> Any:
        return right(self, rows, by, extra).withColumn("views", F.col("views") + 1)

    honest = home.read("page_views")
    home.change("page_views", 'fixed("1 minute")', 'fixed("2 minutes")')
    with monkeypatch.context() as planted:
        planted.setattr(Aggregate, "partial", wrong)
        with pytest.raises(Refused, match="is not what the batch says"):
            Replayer(home.engine(), Progress()).replay("page_views", ONE_GO)
    with pytest.raises(Refused, match="is not proven"):
        home.engine().promote("page_views")
    home.change("page_views", 'fixed("2 minutes")', 'fixed("1 minute")')
    assert home.read("page_views") == honest
