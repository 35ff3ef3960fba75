"""The first ledger."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_identity = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "hosts",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("host", sa.String(200), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "generations",
        sa.Column("id", _identity, primary_key=True),
        sa.Column("pipeline", sa.String(200), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("uid", sa.String(32), nullable=False, unique=True),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("definition_hash", sa.String(64), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_txid", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("frontier", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("watermark", sa.BigInteger()),
        sa.Column("bytes_per_second", sa.Float()),
        sa.UniqueConstraint("pipeline", "number"),
    )
    op.create_table(
        "leases",
        sa.Column("generation", _identity, sa.ForeignKey("generations.id"), primary_key=True),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.String(200), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("taken_at", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "batches",
        sa.Column("generation", _identity, sa.ForeignKey("generations.id"), primary_key=True),
        sa.Column("txid", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("range", sa.Text(), nullable=False),
        sa.Column("range_digest", sa.String(64), nullable=False),
        sa.Column("records", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("batch_time", sa.BigInteger(), nullable=False),
        sa.Column("definition_hash", sa.String(64), nullable=False),
        sa.Column("exempt", sa.Boolean(), nullable=False, server_default=sa.text("false")),
        sa.Column("waived", sa.Boolean(), nullable=False, server_default=sa.text("false")),
        sa.Column("attempt", sa.BigInteger()),
        sa.Column("input", sa.Text()),
        sa.Column("accounting", sa.Text()),
        sa.Column("emitted", sa.BigInteger()),
        sa.Column("filtered", sa.BigInteger()),
        sa.Column("late", sa.BigInteger()),
        sa.Column("duplicate", sa.BigInteger()),
        sa.Column("dead", sa.BigInteger()),
        sa.Column("discarded", sa.BigInteger()),
        sa.Column("rows_out", sa.BigInteger()),
        sa.Column("digest", sa.Text()),
        sa.Column("highest_event_time", sa.BigInteger()),
        sa.Column("watermark", sa.BigInteger()),
        sa.Column("epoch", sa.BigInteger()),
        sa.Column("committed_at", sa.BigInteger()),
        sa.Column("held_reason", sa.Text()),
        sa.Column("discard_reason", sa.Text()),
    )
    op.create_table(
        "claims",
        sa.Column("generation", _identity, sa.ForeignKey("generations.id"), primary_key=True),
        sa.Column("folder", sa.Text(), primary_key=True),
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("txid", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "folders",
        sa.Column("generation", _identity, sa.ForeignKey("generations.id"), primary_key=True),
        sa.Column("folder", sa.Text(), primary_key=True),
        sa.Column("modified", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "attempts",
        sa.Column("id", _identity, primary_key=True),
        sa.Column("generation", _identity, sa.ForeignKey("generations.id"), nullable=False),
        sa.Column("first_txid", sa.BigInteger(), nullable=False),
        sa.Column("last_txid", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.String(200), nullable=False),
        sa.Column("outcome", sa.String(12), nullable=False),
        sa.Column("staging", sa.Text(), nullable=False),
        sa.Column("staged", sa.Text()),
        sa.Column("context", sa.Text()),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger()),
        sa.Column("error", sa.Text()),
        sa.Column("cleaned", sa.Boolean(), nullable=False, server_default=sa.text("false")),
    )
    op.create_table(
        "pins",
        sa.Column("id", _identity, primary_key=True),
        sa.Column("generation", _identity, sa.ForeignKey("generations.id"), nullable=False),
        sa.Column("frontier", sa.BigInteger(), nullable=False),
        sa.Column("purpose", sa.String(200), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "removals",
        sa.Column("generation", _identity, sa.ForeignKey("generations.id"), primary_key=True),
        sa.Column("path", sa.Text(), primary_key=True),
        sa.Column("delete_after", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "journal",
        sa.Column("id", _identity, primary_key=True),
        sa.Column("generation", _identity, sa.ForeignKey("generations.id"), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("txid", sa.BigInteger()),
        sa.Column("detail", sa.Text(), nullable=False),
    )
    live = sa.text("state != 'retired'")
    op.create_index(
        "generations_live",
        "generations",
        ["pipeline", "state"],
        unique=True,
        sqlite_where=live,
        postgresql_where=live,
    )
    uncommitted = sa.text("state != 'COMMITTED'")
    op.create_index(
        "batches_open",
        "batches",
        ["generation", "txid"],
        sqlite_where=uncommitted,
        postgresql_where=uncommitted,
    )
    op.create_index("attempts_by_txid", "attempts", ["generation", "last_txid", "first_txid"])
    uncleaned = sa.text("cleaned = false")
    op.create_index(
        "attempts_open",
        "attempts",
        ["generation", "id"],
        sqlite_where=uncleaned,
        postgresql_where=uncleaned,
    )
    op.create_index("journal_by_generation", "journal", ["generation", "id"])
