"""One host for a SQLite ledger: a second one that is active at the same time is refused, and told the way on."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from sqlalchemy import Connection, insert, select, update

from twinstream.errors import LedgerError
from twinstream.ledger.schema import hosts

QUIET_MICROS = 10 * 60 * 1_000_000
"""After so long without a sign of the other host the ledger is taken to have moved for good."""
REFRESH_SECONDS = 60.0
"""How often a host at work shows that it is there."""


def host_identity() -> str:
    """A name for this host that survives restarts; containers without one can set TWINSTREAM_HOST_ID."""
    named = os.environ.get("TWINSTREAM_HOST_ID")
    if named:
        return named
    try:
        machine = Path("/etc/machine-id").read_text().strip()
    except OSError:
        machine = ""
    return f"{machine}@{socket.gethostname()}"


def is_known(connection: Connection, now: int) -> bool:
    """Whether the ledger knows this host as its own and heard of it just now; raises if it is another's."""
    row = connection.execute(select(hosts.c.host, hosts.c.seen_at).where(hosts.c.id == 1)).first()
    if row is None:
        return False
    if row.host != host_identity() and now - row.seen_at < QUIET_MICROS:
        raise LedgerError(
            f"The SQLite ledger is in use by another host ({row.host.rpartition('@')[2]}).",
            next_step="Use PostgreSQL for more than one host: TWINSTREAM_LEDGER_URL=postgresql://… A ledger that moved "
            "for good is accepted ten minutes after the other host last used it; containers on one machine that share "
            "it must be given the same TWINSTREAM_HOST_ID.",
        )
    return bool(row.host == host_identity() and 0 <= now - row.seen_at < REFRESH_SECONDS * 1_000_000)


def show(connection: Connection, now: int) -> None:
    """Inside a write transaction, so that of two hosts that come at once one sees the other."""
    if is_known(connection, now):
        return
    values = {"host": host_identity(), "seen_at": now}
    if not connection.execute(update(hosts).where(hosts.c.id == 1).values(**values)).rowcount:
        connection.execute(insert(hosts).values(id=1, **values))
