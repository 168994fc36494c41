"""Retention: which events are in which bundle; an index for listings by state."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

LONG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the list of exports and the index."""
    op.create_table(
        "exports",
        sa.Column("last_seq", LONG, primary_key=True, autoincrement=False),
        sa.Column("first_seq", LONG, nullable=False),
        sa.Column("last_number", LONG, nullable=False),
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
    )
    op.create_index("jobs_by_state", "jobs", ["state", "seq"])


def downgrade() -> None:
    """Refuse: journals are not downgraded."""
    raise NotImplementedError("a journal is not downgraded: restore a backup")
