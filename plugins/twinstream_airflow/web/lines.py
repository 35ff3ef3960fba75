"""A pipeline at a glance: what stands in the ledger, judged by its definition's policy."""

from __future__ import annotations

from datetime import timedelta

from twinstream.ledger.standings import Standing, Streamed
from twinstream.ledger.verdicts import Judged
from twinstream.pipeline import Definition
from twinstream.report.words import count, number
from twinstream.runtime.status import moment
from twinstream.transaction import State
from twinstream_airflow.web.models import Finding, Judgement, PipelineLine, Stream, Tone
from twinstream_airflow.web.times import between, span

RANKS: dict[Tone, int] = {"bad": 0, "warn": 1, "none": 2, "good": 3}
LONG = 300
"""Errors are cut to this on a page with many of them."""


def line_of(name: str, standing: Standing | None, definition: Definition | None, now: int) -> PipelineLine:
    """One pipeline; without a standing it was never run, without a definition its file is not here."""
    guarantee = definition.guarantee.delivery.text if definition else None
    if standing is None:
        never = Finding(tone="none", says="It has not been run yet.", path="")
        return PipelineLine(
            name=name, mode="micro-batch", guarantee=guarantee, generation=None, frontier=0, planned=0, open={},
            lag_seconds=0, records_per_second=None, committed_at=None, watermark=None, runner=None, epoch=0,
            paused=None, verdict=None, tone="none", findings=[never],
        )  # fmt: skip
    lag = between(standing.waiting_since, now) or 0.0
    found = sorted(_findings(standing, definition, now, lag), key=lambda one: RANKS[one.tone])
    seconds = standing.group_micros / 1_000_000
    speed = round(standing.group_records / seconds, 1) if seconds else None
    stream = _stream(standing.streamed, now)
    return PipelineLine(
        name=name,
        mode="continuous" if stream else "micro-batch",
        stream=stream,
        guarantee=guarantee,
        generation=standing.number,
        frontier=standing.frontier,
        planned=standing.last_txid,
        open=dict(standing.states),
        lag_seconds=round(lag, 1),
        records_per_second=stream.records_per_second if stream and stream.records_per_second is not None else speed,
        committed_at=moment(standing.committed_at),
        watermark=moment(standing.watermark),
        runner=standing.runner,
        epoch=standing.epoch,
        paused=standing.paused,
        verdict=judgement(standing.verdict) if standing.verdict else None,
        tone=found[0].tone if found else "good",
        findings=found,
    )


def _stream(streamed: Streamed | None, now: int) -> Stream | None:
    """A continuous run that has not ended."""
    if streamed is None or not (streamed.live or streamed.silent):
        return None
    facts = streamed.facts
    return Stream(
        run=streamed.run, live=streamed.live, holder=streamed.holder, started_at=moment(streamed.started_at),
        heartbeat_at=moment(streamed.seen_at), heartbeat_age_seconds=round(between(streamed.seen_at, now) or 0.0, 1),
        every=facts.get("every"), behind=facts.get("behind"), records_per_second=facts.get("records_per_second"),
        batch_seconds=facts.get("seconds"), asked_by=dict(streamed.context),
    )  # fmt: skip


def judgement(one: Judged) -> Judgement:
    """A reconciliation as JSON says it."""
    return Judgement(
        id=one.id, frontier=one.frontier, state=one.state, verdict=one.verdict, differing=one.differing,
        counts=dict(one.counts), whole=one.whole, started_at=moment(one.started_at), ended_at=moment(one.ended_at),
        error=one.error,
    )  # fmt: skip


def _findings(standing: Standing, definition: Definition | None, now: int, lag: float) -> list[Finding]:
    name, first = standing.pipeline, standing.frontier + 1
    found = _of_verdict(standing, definition, now)
    held = standing.states.get(State.HELD, 0)
    if held:
        says = f"{count(held, 'txid')} {'is' if held == 1 else 'are'} held by a gate."
        found.append(Finding(tone="bad", says=says, path=f"/pipelines/{name}?state=HELD"))
    if standing.failure is not None:
        says = f"Txid {number(first)} failed: {standing.failure[:LONG]}"
        found.append(Finding(tone="bad", says=says, path=f"/pipelines/{name}/txids/{first}"))
    streamed = standing.streamed
    if streamed is not None and streamed.silent:
        says = f"Its continuous run has not shown itself for {span(between(streamed.seen_at, now))}."
        found.append(Finding(tone="bad", says=says, path=f"/pipelines/{name}"))
    elif streamed is not None and streamed.failed and (standing.committed_at or 0) < (streamed.ended_at or 0):
        says = f"Its continuous run failed: {(streamed.error or '')[:LONG]}"
        found.append(Finding(tone="bad", says=says, path=f"/pipelines/{name}"))
    if standing.paused is not None:
        says = f"Paused: {standing.paused[:LONG]}"
        found.append(Finding(tone="warn", says=says, path=f"/pipelines/{name}"))
    if definition is not None and definition.hash != standing.definition_hash:
        says = "The definition has changed in a way that changes results; build a new generation by a replay."
        found.append(Finding(tone="warn", says=says, path=f"/pipelines/{name}"))
    allowed = _policy(definition, "max_lag")
    if allowed is not None and lag > allowed.total_seconds():
        says = f"Data has been waiting for {span(lag)}; {span(allowed.total_seconds())} is allowed."
        found.append(Finding(tone="warn", says=says, path=f"/pipelines/{name}"))
    return found


def _of_verdict(standing: Standing, definition: Definition | None, now: int) -> list[Finding]:
    judged, name = standing.verdict, standing.pipeline
    if judged is None:
        says = "Its numbers were never reconciled." if standing.frontier else "Nothing is committed yet."
        return [Finding(tone="none", says=says, path=f"/pipelines/{name}")]
    path = f"/pipelines/{name}/reconciliations/{judged.id}"
    found = []
    if judged.verdict == "different" and judged.differing:
        rows = judged.differing
        says = f"{count(rows, 'row')} {'differs' if rows == 1 else 'differ'} as of txid {number(judged.frontier)}."
        found.append(Finding(tone="bad", says=says, path=path))
    elif judged.verdict == "different":
        says = f"A critical expectation is not met as of txid {number(judged.frontier)}."
        found.append(Finding(tone="bad", says=says, path=path))
    elif judged.verdict == "warning":
        says = f"All rows are equal, with warnings, as of txid {number(judged.frontier)}."
        found.append(Finding(tone="warn", says=says, path=path))
    age, allowed = between(judged.ended_at, now), _policy(definition, "max_verdict_age")
    if age is not None and allowed is not None and age > allowed.total_seconds():
        says = f"The last verdict is {span(age)} old; {span(allowed.total_seconds())} is allowed."
        found.append(Finding(tone="warn", says=says, path=path))
    return found


def _policy(definition: Definition | None, name: str) -> timedelta | None:
    policy = definition.pipeline.orchestration if definition else None
    return policy.duration(name) if policy and getattr(policy, name) else None
