"""Reasons: their fields next to their codes; older rows keep their text."""

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
    """Refuse: journals are not downgraded."""
    raise NotImplementedError("a journal is not downgraded: restore a backup")
