"""The ledger's tables. Times are microseconds since 1970 (UTC) by the database's clock."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData()

COUNTED = ("emitted", "filtered", "late", "duplicate", "dead", "discarded", "rows_out")
"""Accounting that can be added up in SQL; sums and XORs are in the JSON beside it."""

# SQLite numbers rows by itself only for INTEGER keys.
_identity = BigInteger().with_variant(Integer, "sqlite")

hosts = Table(
    "hosts",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("host", String(200), nullable=False),
    Column("seen_at", BigInteger, nullable=False),
)

generations = Table(
    "generations",
    metadata,
    Column("id", _identity, primary_key=True),
    Column("pipeline", String(200), nullable=False),
    Column("number", Integer, nullable=False),
    Column("uid", String(32), nullable=False, unique=True),
    Column("state", String(20), nullable=False),
    Column("definition_hash", String(64), nullable=False),
    Column("definition", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("last_txid", BigInteger, nullable=False, server_default="0"),
    Column("frontier", BigInteger, nullable=False, server_default="0"),
    Column("watermark", BigInteger),
    Column("bytes_per_second", Float),
    UniqueConstraint("pipeline", "number"),
)
IS_LIVE = text("state != 'retired'")
"""A pipeline has one current generation at most, and one that is being built."""
Index(
    "generations_live",
    generations.c.pipeline,
    generations.c.state,
    unique=True,
    sqlite_where=IS_LIVE,
    postgresql_where=IS_LIVE,
)

leases = Table(
    "leases",
    metadata,
    Column("generation", _identity, ForeignKey("generations.id"), primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("holder", String(200), nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("taken_at", BigInteger, nullable=False),
)

batches = Table(
    "batches",
    metadata,
    Column("generation", _identity, ForeignKey("generations.id"), primary_key=True),
    Column("txid", BigInteger, primary_key=True, autoincrement=False),
    Column("state", String(12), nullable=False),
    Column("range", Text, nullable=False),
    Column("range_digest", String(64), nullable=False),
    Column("records", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("batch_time", BigInteger, nullable=False),
    Column("definition_hash", String(64), nullable=False),
    Column("exempt", Boolean, nullable=False, server_default=text("false")),
    Column("waived", Boolean, nullable=False, server_default=text("false")),
    Column("attempt", BigInteger),
    Column("input", Text),
    Column("accounting", Text),
    *(Column(name, BigInteger) for name in COUNTED),
    Column("digest", Text),
    Column("highest_event_time", BigInteger),
    Column("watermark", BigInteger),
    Column("epoch", BigInteger),
    Column("committed_at", BigInteger),
    Column("held_reason", Text),
    Column("discard_reason", Text),
)
IS_OPEN = text("state != 'COMMITTED'")
"""Said as text, so that both databases see that the partial index fits."""
Index(
    "batches_open",
    batches.c.generation,
    batches.c.txid,
    sqlite_where=IS_OPEN,
    postgresql_where=IS_OPEN,
)

claims = Table(
    "claims",
    metadata,
    Column("generation", _identity, ForeignKey("generations.id"), primary_key=True),
    Column("folder", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("txid", BigInteger, nullable=False),
)

folders = Table(
    "folders",
    metadata,
    Column("generation", _identity, ForeignKey("generations.id"), primary_key=True),
    Column("folder", Text, primary_key=True),
    Column("modified", BigInteger, nullable=False),
)

attempts = Table(
    "attempts",
    metadata,
    Column("id", _identity, primary_key=True),
    Column("generation", _identity, ForeignKey("generations.id"), nullable=False),
    Column("first_txid", BigInteger, nullable=False),
    Column("last_txid", BigInteger, nullable=False),
    Column("number", Integer, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("holder", String(200), nullable=False),
    Column("outcome", String(12), nullable=False),
    Column("staging", Text, nullable=False),
    Column("staged", Text),
    Column("context", Text),
    Column("started_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    Column("error", Text),
    Column("cleaned", Boolean, nullable=False, server_default=text("false")),
)
Index(
    "attempts_by_txid",
    attempts.c.generation,
    attempts.c.last_txid,
    attempts.c.first_txid,
)
IS_UNCLEAN = text("cleaned = false")
Index(
    "attempts_open",
    attempts.c.generation,
    attempts.c.id,
    sqlite_where=IS_UNCLEAN,
    postgresql_where=IS_UNCLEAN,
)

pins = Table(
    "pins",
    metadata,
    Column("id", _identity, primary_key=True),
    Column("generation", _identity, ForeignKey("generations.id"), nullable=False),
    Column("frontier", BigInteger, nullable=False),
    Column("purpose", String(200), nullable=False),
    Column("expires_at", BigInteger, nullable=False),
)

removals = Table(
    "removals",
    metadata,
    Column("generation", _identity, ForeignKey("generations.id"), primary_key=True),
    Column("path", Text, primary_key=True),
    Column("delete_after", BigInteger, nullable=False),
)

journal = Table(
    "journal",
    metadata,
    Column("id", _identity, primary_key=True),
    Column("generation", _identity, ForeignKey("generations.id"), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("kind", String(40), nullable=False),
    Column("txid", BigInteger),
    Column("detail", Text, nullable=False),
)
Index("journal_by_generation", journal.c.generation, journal.c.id)

runs = Table(
    "runs",
    metadata,
    Column("id", _identity, primary_key=True),
    Column("generation", _identity, ForeignKey("generations.id"), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("frontier", BigInteger, nullable=False),
    Column("scope", Text, nullable=False),
    Column("definition_hash", String(64), nullable=False),
    Column("state", String(12), nullable=False),
    Column("folder", Text),
    Column("holder", String(200), nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    Column("error", Text),
    Column("result", Text),
    Column("context", Text),
)
Index("runs_by_kind", runs.c.generation, runs.c.kind, runs.c.id)
