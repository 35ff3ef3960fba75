"""Looking into the ledger without making one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twinstream.ledger import Ledger


@contextmanager
def existing_ledger(url: str) -> Iterator[Ledger | None]:
    """The ledger at `url`, or None where nobody has made one yet."""
    from twinstream.ledger import Ledger
    from twinstream.ledger.database import open_unchecked, revision

    path = sqlite_path(url)
    if path is not None and not path.exists():
        yield None
        return
    database = open_unchecked(url)
    try:
        found = revision(database)
    finally:
        database.close()
    if found is None:
        yield None
        return
    ledger = Ledger.open(url, create=False)
    try:
        yield ledger
    finally:
        ledger.close()


def sqlite_path(url: str) -> Path | None:
    """The file of an SQLite ledger; None for other databases, and for what is no address at all."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parsed = make_url(url)
    except ArgumentError:
        return None
    return Path(parsed.database) if parsed.get_backend_name() == "sqlite" and parsed.database else None


def shown_url(url: str) -> str:
    """The ledger's address, without a password."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return "TWINSTREAM_LEDGER_URL"
