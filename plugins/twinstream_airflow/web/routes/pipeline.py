"""One pipeline: its definition, where it stands, and a window of its txids."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from twinstream.ledger import Generation, Ledger
from twinstream.ledger.standings import LOOKED_AT, standings
from twinstream.ledger.verdicts import history
from twinstream.ledger.windows import TxidRow, failed, open_states, window
from twinstream.pipeline import Definition
from twinstream.report.flow import WIDTH, flow
from twinstream.runtime.status import moment
from twinstream.sources.kafka.source import KafkaSource
from twinstream.transaction import CLASSES, Accounting, State, Tally
from twinstream_airflow.web.actions import of_pipeline
from twinstream_airflow.web.guards import Reader
from twinstream_airflow.web.lines import LONG, judgement, line_of
from twinstream_airflow.web.models import (
    AttemptLine,
    DefinitionFacts,
    Entry,
    Part,
    PipelineFacts,
    TxidLine,
    Window,
)
from twinstream_airflow.web.pages import page
from twinstream_airflow.web.plots import plot
from twinstream_airflow.web.series import series
from twinstream_airflow.web.timeline import BY_ATTENTION, FAILED, timeline
from twinstream_airflow.web.times import between
from twinstream_airflow.web.where import Here

router = APIRouter()
WIDEST = 1_000
"""A window has at most so many txids: what a page says about them is exact, and takes the same time at any size."""
LISTED = 100
Txid = Annotated[int | None, Query(ge=1, le=2**53)]


@router.get("/api/pipelines/{pipeline}")
def pipeline_facts(
    visitor: Reader, here: Here, pipeline: str, first: Txid = None, last: Txid = None, state: str = ""
) -> PipelineFacts:
    """Where it stands, and the txids from `first` to `last` (default: the newest), `state` narrowing the table."""
    ledger, generation = here.generation(pipeline)
    now, found = standings(ledger.database, pipeline)
    line = line_of(pipeline, found[0] if found else None, here.definition(pipeline), now)
    shown = _window(generation.last_txid, first, last, _first_of(ledger, generation, state))
    rows = window(ledger.database, generation.id, shown.first, shown.last)
    errors = failed(ledger.database, generation.id, generation.frontier)
    states = open_states(ledger.database, generation.id, generation.frontier, LOOKED_AT)
    listed = [row for row in reversed(rows) if state in ("", _state(row, errors))]
    return PipelineFacts(
        line=line,
        definition=_definition(here.definition(pipeline), generation),
        window=shown,
        timeline=timeline(generation.last_txid, generation.frontier, states, errors),
        series=series(rows),
        accounting=_accounting(rows),
        txids=[_txid(row, errors) for row in listed[:LISTED]],
        more=len(listed) > LISTED,
        attempts=[attempt_line(one) for one in ledger.attempts.newest(generation.id, 15)],
        journal=[entry(one) for one in ledger.journal.newest(generation.id, 15)],
        verdicts=[judgement(one) for one in history(ledger.database, pipeline, 40)],
        actions=of_pipeline(
            visitor,
            pipeline,
            paused=line.paused is not None,
            topics=_reads_topics(here.definition(pipeline)),
            streamed=line.stream is not None,
        ),
    )


@router.get("/pipelines/{pipeline}", include_in_schema=False)
def pipeline_page(
    request: Request,
    visitor: Reader,
    here: Here,
    pipeline: str,
    first: Txid = None,
    last: Txid = None,
    state: str = "",
) -> HTMLResponse:
    """The page of it."""
    facts = pipeline_facts(visitor, here, pipeline, first, last, state)
    tallies: dict[str, Any] = {name: Tally(facts.accounting[name]) for name in CLASSES}
    return page(
        request, "pipeline", facts=facts, state=state, states=BY_ATTENTION, flow=flow(Accounting(**tallies)),
        flow_width=WIDTH, plots=[plot(one) for one in facts.series],
    )  # fmt: skip


def attempt_line(row: Mapping[str, Any]) -> AttemptLine:
    """A try as JSON says it."""
    error = row["error"]
    return AttemptLine(
        id=row["id"], first=row["first_txid"], last=row["last_txid"], number=row["number"], epoch=row["epoch"],
        holder=row["holder"], outcome=str(row["outcome"]), started_at=moment(row["started_at"]),
        ended_at=moment(row["ended_at"]), error=error if error is None else str(error)[: 10 * LONG],
        asked_by={str(k): str(v) for k, v in json.loads(row["context"]).items()} if row["context"] else {},
    )  # fmt: skip


def entry(row: Mapping[str, Any]) -> Entry:
    """What happened, as JSON says it."""
    return Entry(at=moment(row["at"]), kind=row["kind"], txid=row["txid"], detail=row["detail"])


def _reads_topics(definition: Definition | None) -> bool:
    return definition is not None and isinstance(definition.pipeline.source, KafkaSource)


def _first_of(ledger: Ledger, generation: Generation, state: str) -> int | None:
    """Where to look for an open state that is asked for: at the oldest open txids, not at the newest ones."""
    is_open = state in (FAILED, *(one.value for one in State if one is not State.COMMITTED))
    return generation.frontier + 1 if is_open and generation.frontier < generation.last_txid else None


def _window(of: int, first: int | None, last: int | None, begin: int | None) -> Window:
    if first is None and last is None and begin is not None:
        first = begin
    if first is not None and last is None:
        last = first + WIDEST - 1
    end = max(0, min(of, last if last is not None else of))
    start = max(1, end - WIDEST + 1, min(first if first is not None else 1, end))
    return Window(first=start, last=end, of=of)


def _state(row: TxidRow, errors: Mapping[int, str]) -> str:
    return FAILED if row.txid in errors and row.state == State.PLANNED else row.state


def _txid(row: TxidRow, errors: Mapping[int, str]) -> TxidLine:
    state = _state(row, errors)
    reason = errors[row.txid] if state == FAILED else row.held_reason or row.discard_reason
    return TxidLine(
        txid=row.txid,
        state=state,
        records=row.records,
        rows_out=row.rows_out,
        late=row.late,
        dead=row.dead,
        planned_at=moment(row.batch_time),
        committed_at=moment(row.committed_at),
        seconds=between(row.batch_time, row.committed_at),
        reason=reason[:LONG] if reason else None,
    )


def _accounting(rows: Sequence[TxidRow]) -> dict[str, int]:
    done = [row for row in rows if row.state == State.COMMITTED]
    found = {name: sum(getattr(row, name) or 0 for row in done) for name in CLASSES}
    return {"read": sum(found.values()), **found, "rows_out": sum(row.rows_out or 0 for row in done)}


def _definition(definition: Definition | None, generation: Generation) -> DefinitionFacts | None:
    if definition is None:
        return None
    pipeline, guarantee = definition.pipeline, definition.guarantee
    source = getattr(pipeline.source, "path", "")
    prepare = pipeline.prepare
    says = {
        "Source": f"{pipeline.source.kind} {source}",
        "Record id": pipeline.record_id,
        "Event time": pipeline.event_time,
        "Prepare": "as it is"
        if prepare is None
        else " ".join(prepare.split())
        if isinstance(prepare, str)
        else f"{prepare.__name__}()",
        "Operator": json.dumps(pipeline.operator.canonical(), ensure_ascii=False, default=str),
        "Watermark": _watermark(pipeline.watermark),
        "Sink": f"{pipeline.sink.kind} {pipeline.sink.place}",
        "Records per txid": f"about {pipeline.batch_records}",
    }
    parts = [
        Part(part=one.part, delivery=one.delivery.text, reason=one.reason, weakest=one is guarantee.weakest)
        for one in guarantee.parts
    ]
    return DefinitionFacts(
        file=definition.file.name, hash=definition.hash, changed=definition.hash != generation.definition_hash,
        guarantee=guarantee.delivery.text, parts=parts, says=says,
    )  # fmt: skip


def _watermark(watermark: Any) -> str:
    if watermark is None:
        return "none: no record is late"
    return f"{watermark.delay} behind the highest event time; late records: {watermark.late}"
