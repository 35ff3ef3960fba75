"""Freshness: is the last verdict recent enough, is data waiting for too long, does a continuous run keep up?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from twinstream.ledger.standings import standings
from twinstream_airflow import settings
from twinstream_airflow.metrics import tell
from twinstream_airflow.operators.base import TwinstreamOperator
from twinstream_airflow.running.failures import in_airflows_words

if TYPE_CHECKING:
    from airflow.sdk import Context

    from twinstream.ledger import Generation, Ledger


class FreshnessOperator(TwinstreamOperator):
    """Fails, and so notifies, where a pipeline is staler than its policy allows: also when no run ever came."""

    def __init__(
        self, *, max_verdict_age: timedelta | None = None, max_lag: timedelta | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self.max_verdict_age = max_verdict_age
        self.max_lag = max_lag

    def work(self, context: Context) -> dict[str, Any]:
        from twinstream.cli.standing import existing_ledger

        with in_airflows_words(), existing_ledger(settings.of_task().ledger_url) as ledger:
            generation = ledger.generations.current(self.pipeline) if ledger else None
            age = _age(ledger, generation) if ledger and generation else None
            lag = _lag(ledger, generation) if ledger and generation else timedelta()
            behind = _behind(ledger, self.pipeline) if ledger else []
            if ledger:
                tell(ledger, self.pipeline)
        complaints = []
        if self.max_verdict_age is not None and (age is None or age > self.max_verdict_age):
            said = "it was never reconciled" if age is None else f"its last verdict is {_rounded(age)} old"
            complaints.append(f"{said} (allowed: {_rounded(self.max_verdict_age)})")
        if self.max_lag is not None and lag > self.max_lag:
            complaints.append(f"data has been waiting for {_rounded(lag)} (allowed: {_rounded(self.max_lag)})")
        if self.max_lag is not None:
            over = [f"{said} for {_rounded(since)}" for said, since in behind if since > self.max_lag]
            complaints += [f"{said} (allowed: {_rounded(self.max_lag)})" for said in over]
        if complaints:
            raise AirflowFailException(f"{self.pipeline} is not fresh: {'; '.join(complaints)}.")
        return {"verdict_age": None if age is None else age.total_seconds(), "lag": lag.total_seconds()}


def _age(ledger: Ledger, generation: Generation) -> timedelta | None:
    """Since the last reconciliation of the whole result; None if there was none."""
    ends = [run.ended_at for run in ledger.runs.done(generation.id, "reconcile") if run.ended_at and not run.scope]
    return _since(ledger, max(ends)) if ends else None


def _lag(ledger: Ledger, generation: Generation) -> timedelta:
    """Since the oldest open txid was planned."""
    oldest = ledger.batches.backlog(generation.id)[3]
    return timedelta() if oldest is None else _since(ledger, oldest)


def _behind(ledger: Ledger, pipeline: str) -> list[tuple[str, timedelta]]:
    """What is wrong with the continuous run of a pipeline, and since when; nothing once somebody else commits."""
    now, found = standings(ledger.database, pipeline)
    streamed = found[0].streamed if found else None
    if streamed is None:
        return []
    committed = max(found[0].committed_at or 0, streamed.started_at)
    since = timedelta(microseconds=now - committed)
    if streamed.silent:
        return [("its continuous run has not shown itself", timedelta(microseconds=now - streamed.seen_at))]
    if streamed.failed and streamed.ended_at is not None and committed < streamed.ended_at:
        return [(f"its continuous run has failed ({streamed.error})", timedelta(microseconds=now - streamed.ended_at))]
    if streamed.live and streamed.facts.get("behind"):
        return [(f"it is {streamed.facts['behind']:.0f} records behind and has committed nothing", since)]
    return []


def _since(ledger: Ledger, moment: int) -> timedelta:
    with ledger.database.read() as connection:
        now = ledger.database.now(connection)
    return timedelta(microseconds=max(0, now - moment))


def _rounded(span: timedelta) -> str:
    return str(timedelta(seconds=round(span.total_seconds())))
