"""Access tokens, stored as digests."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

LONG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the table of tokens."""
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created_ms", LONG, nullable=False),
        sa.Column("expires_ms", LONG, nullable=False),
        sa.Column("revoked_ms", LONG),
        sa.Column("last_used", LONG),
    )
    op.create_index("tokens_by_digest", "tokens", ["digest"], unique=True)


def downgrade() -> None:
    """Refuse: journals are not downgraded."""
    raise NotImplementedError("a journal is not downgraded: restore a backup")
