"""Idempotency keys of submissions."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

LONG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the table of keys; no request before it had one."""
    op.create_table(
        "submit_keys",
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("number", LONG, nullable=False),
        sa.Column("at_ms", LONG, nullable=False),
        sa.PrimaryKeyConstraint("team", "key"),
    )
    op.create_index("submit_keys_by_time", "submit_keys", ["at_ms"])


def downgrade() -> None:
    """Refuse: journals are not downgraded."""
    raise NotImplementedError("a journal is not downgraded: restore a backup")
