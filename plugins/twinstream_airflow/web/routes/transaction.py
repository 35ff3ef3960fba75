"""One txid: what it read, who tried it, what came of it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse

from twinstream.ledger.windows import entries
from twinstream.report.words import CLASSES
from twinstream.runtime.status import moment
from twinstream.transaction import Batch, Outcome, State, Tally
from twinstream_airflow.web.actions import of_txid
from twinstream_airflow.web.dead_letters import dead_letters
from twinstream_airflow.web.guards import Reader
from twinstream_airflow.web.models import AttemptLine, Class, Committer, DeadLetters, FileLine, Transaction
from twinstream_airflow.web.pages import page
from twinstream_airflow.web.routes.pipeline import attempt_line, entry
from twinstream_airflow.web.where import Here, NotThere

router = APIRouter()
FILES = 100
Txid = Annotated[int, Path(ge=1, le=2**53)]


@router.get("/api/pipelines/{pipeline}/txids/{txid}")
def transaction(visitor: Reader, here: Here, pipeline: str, txid: Txid) -> Transaction:
    """Everything about a txid of the current generation."""
    ledger, generation = here.generation(pipeline)
    found = ledger.batches.get(generation.id, txid, txid)
    if not found:
        raise NotThere(
            f"{pipeline} has no txid {txid}.",
            untouched="",
            next_step=f"Its txids are 1 to {generation.last_txid}."
            if generation.last_txid
            else "Nothing is planned yet.",
        )
    batch = found[0]
    tries = [attempt_line(one) for one in ledger.attempts.of_txid(generation.id, txid)]
    digest = ledger.batches.digests(generation.id, txid, txid).get(txid)
    is_failed = batch.state is State.PLANNED and _failed_alone(tries)
    accounting = batch.accounting
    return Transaction(
        pipeline=pipeline,
        generation=generation.number,
        txid=txid,
        of=generation.last_txid,
        state=batch.state.value,
        failed=is_failed,
        records=batch.range.records,
        bytes=batch.range.size,
        range_digest=batch.range_digest,
        files=_files(batch)[:FILES],
        files_total=len(_files(batch)),
        batch_time=moment(batch.batch_time),
        committed_at=moment(batch.committed_at),
        watermark=moment(batch.watermark),
        highest_event_time=moment(batch.highest_event_time),
        epoch=batch.epoch,
        committed_by=_committer(tries),
        exempt=batch.exempt,
        waived=batch.waived,
        held_reason=batch.held_reason,
        discard_reason=batch.discard_reason,
        input=_class("read", "read the first time", batch.input) if batch.input else None,
        digest=_class("result", "rows of the result", digest) if digest else None,
        accounting=[_class(name, word, getattr(accounting, name)) for name, word in CLASSES.items()]
        if accounting
        else [],
        closes=accounting.read == batch.input if accounting and batch.input else None,
        rows_out=accounting.rows_out if accounting else None,
        attempts=tries,
        journal=[entry(one) for one in entries(ledger.database, generation.id, txid)],
        actions=of_txid(visitor, pipeline, txid, held=batch.state is State.HELD, failed=is_failed),
    )


@router.get("/api/pipelines/{pipeline}/txids/{txid}/dead")
def dead(visitor: Reader, here: Here, pipeline: str, txid: Txid) -> DeadLetters:
    """Its dead letters, capped; none where the definition is not on this machine."""
    _, generation = here.generation(pipeline)
    definition = here.definition(pipeline)
    if definition is None:
        return DeadLetters(total=0, letters=[], masked=False)
    return dead_letters(here.settings, definition, generation, txid)


@router.get("/pipelines/{pipeline}/txids/{txid}", include_in_schema=False)
def transaction_page(
    request: Request, visitor: Reader, here: Here, pipeline: str, txid: Txid, letters: bool = False
) -> HTMLResponse:
    """The page of it; dead letters only when they are asked for, as they are read from the sink."""
    facts = transaction(visitor, here, pipeline, txid)
    found = dead(visitor, here, pipeline, txid) if letters else None
    return page(request, "transaction", facts=facts, letters=found)


def _committer(tries: list[AttemptLine]) -> Committer | None:
    won = next((one for one in tries if one.outcome == Outcome.COMMITTED), None)
    if won is None:
        return None
    mode: Any = "continuous" if won.asked_by.get("mode") == "continuous" else "micro-batch"
    return Committer(mode=mode, holder=won.holder, epoch=won.epoch, asked_by=won.asked_by)


def _failed_alone(tries: list[AttemptLine]) -> bool:
    """Only then can it be discarded: in a group any other txid could be at fault."""
    return bool(tries) and tries[-1].outcome == Outcome.FAILED and tries[-1].first == tries[-1].last


def _files(batch: Batch) -> list[FileLine]:
    listed: list[dict[str, Any]] = list(batch.range.payload.get("files") or [])
    return [
        FileLine(path=str(one.get("path", "")), records=one.get("records"), bytes=one.get("size"))
        for one in listed
        if isinstance(one, dict)
    ]


def _class(name: str, word: str, tally: Tally) -> Class:
    _, total, xor = tally.to_list()
    return Class(name=name, word=word, count=tally.count, sum=str(total), xor=str(xor))
