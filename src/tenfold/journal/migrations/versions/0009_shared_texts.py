"""Texts that the events of an array share."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

LONG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
IS_SHARED = sa.text("shared IS NOT NULL")


def upgrade() -> None:
    """Add the table; events that are there keep their whole text."""
    op.create_table(
        "shared_texts",
        sa.Column("seq", LONG, primary_key=True, autoincrement=False),
        sa.Column("body", sa.Text(), nullable=False),
    )
    op.add_column("events", sa.Column("shared", LONG))
    op.create_index(
        "events_by_shared",
        "events",
        ["shared"],
        sqlite_where=IS_SHARED,
        postgresql_where=IS_SHARED,
    )


def downgrade() -> None:
    """Refuse: journals are not downgraded."""
    raise NotImplementedError("a journal is not downgraded: restore a backup")
