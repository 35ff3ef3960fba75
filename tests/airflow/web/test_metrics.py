"""Metrics by Airflow's own stats: the same numbers that the pages show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.airflow.web.made import MINUTE, Made
from tests.unit.report import results
from twinstream_airflow.metrics import tell


class Recorder:
    """A backend that keeps what it is told."""

    def __init__(self) -> None:
        self.gauges: dict[str, float] = {}

    def gauge(self, stat: str, value: float, **_: Any) -> None:
        self.gauges[stat] = value


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger
    from airflow.sdk.observability import stats

    found: Any = Recorder()
    stats.initialize(factory=lambda: found, export_legacy_names=True)
    yield found
    stats.initialize(factory=NoStatsLogger, export_legacy_names=True)


def test_lag_frontier_verdict_and_states_are_gauges(made: Made, recorder: Recorder) -> None:
    generation = made.generation("page_views", "h", 30, 5)
    made.hold(generation, 31, "a reason")
    made.reconcile(generation, "page_views", results.different, ago=30 * MINUTE)
    tell(made.ledger, "page_views")
    told = {name.removeprefix("twinstream."): value for name, value in recorder.gauges.items()}
    ages = {name: told.pop(f"{name}_seconds.page_views") for name in ("lag", "frontier_age", "verdict_age")}
    assert told == {
        "frontier.page_views": 30, "txids_planned.page_views": 4, "txids_held.page_views": 1,
        "txids_processing.page_views": 0, "txids_processed.page_views": 0, "verdict.page_views": 2,
        "differing_rows.page_views": 45,
    }  # fmt: skip
    assert {name: age // 60 for name, age in ages.items()} == {"lag": 4, "frontier_age": 1, "verdict_age": 30}


def test_a_pipeline_that_was_never_reconciled_has_no_verdict_gauge(made: Made, recorder: Recorder) -> None:
    made.generation("page_views", "h", 3)
    tell(made.ledger, "page_views")
    assert "twinstream.frontier.page_views" in recorder.gauges
    assert not [name for name in recorder.gauges if "verdict" in name]


def test_a_backend_that_breaks_does_not_break_the_task(
    made: Made, recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    made.generation("page_views", "h", 3)
    recorder.gauges = None  # type: ignore[assignment]
    tell(made.ledger, "page_views")
    assert "The metrics of page_views could not be told" in caplog.text


def test_a_continuous_run_has_gauges_as_long_as_it_runs(made: Made, recorder: Recorder) -> None:
    generation = made.generation("page_views", "h", 3)
    made.stream(generation)
    tell(made.ledger, "page_views")
    told = {name.removeprefix("twinstream.continuous").removesuffix(".page_views"): value
            for name, value in recorder.gauges.items() if ".continuous" in name}  # fmt: skip
    assert 3 <= told.pop("_heartbeat_age_seconds") < 30
    assert told == {"": 1.0, "_behind_records": 1234.0, "_records_per_second": 5678.0, "_batch_seconds": 1.5}
    recorder.gauges.clear()
    made.stream(generation, "done")
    tell(made.ledger, "page_views")
    assert {name: value for name, value in recorder.gauges.items() if ".continuous" in name} == {
        "twinstream.continuous.page_views": 0.0
    }
