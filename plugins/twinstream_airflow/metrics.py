"""Where a pipeline stands, as gauges of Airflow's own stats: StatsD, Datadog and OpenTelemetry get them alike.

Every task that has looked into the ledger tells them; the hourly freshness task also does where nothing else runs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from twinstream.ledger.standings import Standing, Streamed, standings
from twinstream.transaction import State

if TYPE_CHECKING:
    from twinstream.ledger import Ledger

log = logging.getLogger(__name__)

VERDICTS = {"equal": 0, "warning": 1, "different": 2}
_MICROS = 1_000_000


def tell(ledger: Ledger, pipeline: str) -> None:
    """Sets all gauges of a pipeline. Never in the way of the task: what goes wrong is only logged."""
    try:
        from airflow.sdk.observability.stats import gauge

        now, found = standings(ledger.database, pipeline)
        for standing in found:
            for name, value in gauges(standing, now).items():
                gauge(f"twinstream.{name}.{pipeline}", value)
    except Exception:
        log.warning("The metrics of %s could not be told", pipeline, exc_info=True)


def gauges(standing: Standing, now: int) -> dict[str, float]:
    """Names and values; what is not known yet has no gauge."""
    found: dict[str, float] = {
        "frontier": standing.frontier,
        "lag_seconds": _age(standing.waiting_since, now) or 0.0,
        **{f"txids_{state.lower()}": standing.states.get(state, 0) for state in State if state != State.COMMITTED},
    }
    judged = standing.verdict
    ages = {
        "frontier_age_seconds": _age(standing.committed_at, now),
        "verdict_age_seconds": _age(judged.ended_at, now) if judged else None,
    }
    found |= {name: age for name, age in ages.items() if age is not None}
    if standing.streamed is not None:
        found |= _streamed(standing.streamed, now)
    if judged is not None and judged.verdict in VERDICTS:
        found |= {"verdict": VERDICTS[judged.verdict], "differing_rows": judged.differing}
    return found


def _streamed(streamed: Streamed, now: int) -> dict[str, float]:
    """Of the newest continuous run: whether it streams, and how it does as long as it has not ended."""
    found = {"continuous": float(streamed.live)}
    if streamed.live or streamed.silent:
        found["continuous_heartbeat_age_seconds"] = _age(streamed.seen_at, now) or 0.0
    if streamed.live:
        names = {"behind": "behind_records", "records_per_second": "records_per_second", "seconds": "batch_seconds"}
        found |= {f"continuous_{name}": float(streamed.facts.get(fact) or 0) for fact, name in names.items()}
    return found


def _age(moment: int | None, now: int) -> float | None:
    return None if moment is None else max(0, now - moment) / _MICROS
