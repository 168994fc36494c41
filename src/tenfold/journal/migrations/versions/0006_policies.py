"""Which policy decided, from which event and cycle on."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

LONG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the table of policies."""
    op.create_table(
        "policies",
        sa.Column("epoch", LONG, primary_key=True, autoincrement=False),
        sa.Column("first_seq", LONG, nullable=False),
        sa.Column("first_cycle", LONG, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
    )


def downgrade() -> None:
    """Refuse: journals are not downgraded."""
    raise NotImplementedError("a journal is not downgraded: restore a backup")
