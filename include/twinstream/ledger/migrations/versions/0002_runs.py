"""Runs of the batch layer: recomputations, reconciliations, repairs."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_identity = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "runs",
        sa.Column("id", _identity, primary_key=True),
        sa.Column("generation", _identity, sa.ForeignKey("generations.id"), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("frontier", sa.BigInteger(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("definition_hash", sa.String(64), nullable=False),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("folder", sa.Text()),
        sa.Column("holder", sa.String(200), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger()),
        sa.Column("error", sa.Text()),
        sa.Column("result", sa.Text()),
        sa.Column("context", sa.Text()),
    )
    op.create_index("runs_by_kind", "runs", ["generation", "kind", "id"])
