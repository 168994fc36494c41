"""Acceptance tests: the reason of a cordon as text, and the test result."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what the events of a node tell since nodes are tested; older ones tell none of it."""
    op.add_column("nodes", sa.Column("sentence", sa.Text(), nullable=False, server_default=""))
    op.add_column("nodes", sa.Column("acceptance", sa.Text()))


def downgrade() -> None:
    """Refuse: journals are not downgraded."""
    raise NotImplementedError("a journal is not downgraded: restore a backup")
