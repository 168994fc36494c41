"""A lease that expires, and the control planes that share a journal."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

LONG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the columns; a lease of before has expired."""
    for name in ("control_plane", "url", "executor"):
        op.add_column("lease", sa.Column(name, sa.Text()))
    for name in ("lease_ms", "renewed_ms"):
        op.add_column("lease", sa.Column(name, LONG))
    op.create_table(
        "control_planes",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("seen_ms", LONG, nullable=False),
    )


def downgrade() -> None:
    """Refuse: journals are not downgraded."""
    raise NotImplementedError("a journal is not downgraded: restore a backup")
