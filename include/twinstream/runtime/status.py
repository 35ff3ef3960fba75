"""Where a pipeline stands, as plain data: the same for the command line, the pages and alerts."""

from __future__ import annotations

from typing import Any

from twinstream.ledger import Ledger
from twinstream.ledger.standings import standings
from twinstream.pipeline import Definition


def status_of(ledger: Ledger, definition: Definition) -> dict[str, Any]:
    """Frontier, backlog, watermark, accounting, open txids and the newest attempts."""
    with ledger.database.read() as connection:
        now = ledger.database.now(connection)
    generation = ledger.generations.current(definition.name)
    data: dict[str, Any] = {
        "pipeline": definition.name,
        "guarantee": definition.guarantee.delivery.text,
        "generation": None,
        "now_micros": now,
    }
    if generation is None:
        return data
    txids, records, size, oldest = ledger.batches.backlog(generation.id)
    holder = ledger.leases.holder(generation.id)
    return data | {
        "generation": generation.number,
        "definition": generation.definition_hash,
        "definition_changed": generation.definition_hash != definition.hash,
        "frontier": generation.frontier,
        "planned": generation.last_txid,
        "backlog": {"txids": txids, "records": records, "bytes": size, "oldest_micros": oldest},
        "lag_seconds": 0 if oldest is None else round(max(0, now - oldest) / 1_000_000, 1),
        "watermark": moment(generation.watermark),
        "epoch": holder[1] if holder else 0,
        "runner": holder[0] if holder and holder[2] else None,
        "accounting": ledger.batches.totals(generation.id),
        "open": [
            {"txid": b.txid, "state": b.state.value, "records": b.range.records, "reason": b.held_reason}
            for b in ledger.batches.open(generation.id, 10)
        ],
        "attempts": ledger.attempts.newest(generation.id),
        "journal": ledger.journal.newest(generation.id),
        "continuous": _streamed(ledger, definition.name),
    }


def _streamed(ledger: Ledger, pipeline: str) -> dict[str, Any] | None:
    """What the newest continuous run says of itself: its pace, and how far it is behind its topics."""
    _, found = standings(ledger.database, pipeline)
    streamed = found[0].streamed if found else None
    if streamed is None:
        return None
    return {"run": streamed.run, "live": streamed.live, "seen_micros": streamed.seen_at, **streamed.facts}


def moment(micros: int | None) -> str | None:
    """A moment in time as ISO-8601 in UTC; microseconds only where there are any."""
    if micros is None:
        return None
    from datetime import UTC, datetime, timedelta

    try:
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    except OverflowError:
        return f"{micros} µs"
    return at.isoformat().replace("+00:00", "Z")
