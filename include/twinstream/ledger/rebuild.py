"""Rebuilding: a ledger that is lost or older than the sink is brought up to what the sink's manifests say."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from sqlalchemy import Connection, delete, insert, select, update

from twinstream.errors import LeaseHeld, LedgerSinkMismatch
from twinstream.ledger.attempts import counted
from twinstream.ledger.batches import split_claim
from twinstream.ledger.database import Database
from twinstream.ledger.journal import write_entry
from twinstream.ledger.schema import IS_UNCLEAN, attempts, batches, claims, folders, generations, leases
from twinstream.transaction import Manifest, Outcome, State, canonical_json


def rebuild(
    database: Database,
    generation: int,
    manifests: Sequence[Manifest],
    epoch: int,
    is_dead: Callable[[str], bool] = lambda _: False,
) -> int:
    """Takes over what the sink has committed; txids that were only planned are forgotten and planned anew.

    Returns how many txids were taken over. What the ledger has committed itself must be what the sink has.
    """
    by_txid = {manifest.txid: manifest for manifest in manifests}
    last = max(by_txid, default=0)
    if sorted(by_txid) != list(range(1, last + 1)):
        raise LedgerSinkMismatch(
            f"The sink has only {len(by_txid)} of {last} manifests.",
            next_step="The sink itself is damaged: see 'When ledger and sink disagree' in docs/protocol.md.",
        )
    with database.write("rebuild", generation) as connection:
        now = database.now(connection)
        _refuse_live_runner(connection, generation, now, is_dead)
        mine = batches.c.generation == generation
        committed = connection.execute(
            select(batches.c.txid, batches.c.range_digest).where(mine, batches.c.state == State.COMMITTED)
        ).all()
        for row in committed:
            if row.txid not in by_txid or by_txid[row.txid].range_digest != row.range_digest:
                raise LedgerSinkMismatch(
                    f"The ledger has committed txid {row.txid}, which the sink has not, or with another range.",
                    next_step="The sink itself is damaged: see 'When ledger and sink disagree' in docs/protocol.md.",
                )
        kept = {row.txid for row in committed}
        missing = [manifest for txid, manifest in sorted(by_txid.items()) if txid not in kept]
        connection.execute(delete(batches).where(mine, batches.c.state != State.COMMITTED))
        left = select(batches.c.txid).where(mine)
        connection.execute(delete(claims).where(claims.c.generation == generation, claims.c.txid.not_in(left)))
        connection.execute(delete(folders).where(folders.c.generation == generation))
        _end_attempts(connection, generation, manifests, now)
        if missing:
            connection.execute(insert(batches), [_row(generation, manifest, now) for manifest in missing])
            names = [
                {"generation": generation, "folder": folder, "name": name, "txid": manifest.txid}
                for manifest in missing
                for folder, name in map(split_claim, manifest.range.claims)
            ]
            if names:
                connection.execute(insert(claims), names)
        connection.execute(
            update(generations)
            .where(generations.c.id == generation)
            .values(last_txid=last, frontier=last, watermark=by_txid[last].watermark if last else None)
        )
        known = connection.execute(select(leases.c.epoch).where(leases.c.generation == generation)).scalar()
        connection.execute(delete(leases).where(leases.c.generation == generation))
        connection.execute(
            insert(leases).values(
                generation=generation, epoch=max(epoch, known or 0), holder="rebuilt", expires_at=0, taken_at=now
            )
        )
        write_entry(connection, generation, now, "rebuilt", f"{len(missing)} txids taken over from the sink", last)
    return len(missing)


def _refuse_live_runner(connection: Connection, generation: int, now: int, is_dead: Callable[[str], bool]) -> None:
    row = connection.execute(select(leases).where(leases.c.generation == generation)).first()
    if row is not None and row.expires_at > now and not is_dead(row.holder):
        raise LeaseHeld(
            f"{row.holder} is running this pipeline (epoch {row.epoch}).",
            untouched="The ledger was left as it is.",
            next_step="Stop it, or wait until it is done, then rebuild.",
        )


def _end_attempts(connection: Connection, generation: int, manifests: Sequence[Manifest], now: int) -> None:
    """Attempts whose files the sink names are committed, whatever the ledger knew of them: no one may clean them up.

    The others that are still open are abandoned.
    """
    named = {str(parent) for manifest in manifests for file in manifest.files for parent in PurePosixPath(file).parents}
    mine = attempts.c.generation == generation
    for row in connection.execute(select(attempts.c.id, attempts.c.staging).where(mine, IS_UNCLEAN)).all():
        if row.staging in named:
            connection.execute(
                update(attempts)
                .where(attempts.c.id == row.id)
                .values(outcome=Outcome.COMMITTED, ended_at=now, cleaned=True)
            )
    connection.execute(
        update(attempts)
        .where(mine, attempts.c.outcome.in_((Outcome.RUNNING, Outcome.PROCESSED)))
        .values(outcome=Outcome.ABANDONED, ended_at=now)
    )


def _row(generation: int, manifest: Manifest, now: int) -> dict[str, object]:
    return {
        "generation": generation,
        "txid": manifest.txid,
        "state": State.COMMITTED,
        "range": canonical_json(manifest.range.to_dict()),
        "range_digest": manifest.range_digest,
        "records": manifest.range.records,
        "bytes": manifest.range.size,
        "batch_time": manifest.batch_time,
        "definition_hash": manifest.definition_hash,
        "exempt": manifest.exempt,
        "discard_reason": manifest.discard_reason,
        "input": json.dumps(manifest.accounting.read.to_list()),
        "accounting": canonical_json(manifest.accounting.to_dict()),
        "digest": json.dumps(manifest.digest.to_list()),
        "highest_event_time": manifest.highest_event_time,
        "watermark": manifest.watermark,
        "epoch": manifest.epoch,
        "committed_at": now,
        **counted(manifest.accounting),
    }
