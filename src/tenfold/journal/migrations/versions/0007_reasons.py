"""Reasons: what they are about stands beside their codes, as data; older rows keep their prose."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the fields of reasons to the read tables."""
    op.add_column("jobs", sa.Column("fields", sa.Text()))
    op.add_column("nodes", sa.Column("fields", sa.Text()))


def downgrade() -> None:
    """Refuse: a journal is never taken apart."""
    raise NotImplementedError("a journal is not downgraded: restore a backup")
