"""The model registry: versions, aliases, and who changed what."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

LONG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the tables of the model registry."""
    op.create_table(
        "model_versions",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("seq", LONG, nullable=False),
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("number", LONG, nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("registered_ms", LONG, nullable=False),
        sa.Column("removed_ms", LONG),
        sa.Column("body", sa.Text(), nullable=False),
    )
    op.create_index("model_versions_by_model", "model_versions", ["team", "model", "number"])
    op.create_table(
        "model_aliases",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("alias", sa.Text(), nullable=False),
        sa.Column("number", LONG, nullable=False),
        sa.Column("by_user", sa.Text(), nullable=False),
        sa.Column("changed_ms", LONG, nullable=False),
    )
    op.create_index("model_aliases_by_model", "model_aliases", ["team", "model"])
    op.create_table(
        "model_changes",
        sa.Column("seq", LONG, primary_key=True, autoincrement=False),
        sa.Column("at_ms", LONG, nullable=False),
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("number", LONG, nullable=False),
        sa.Column("before", sa.Text(), nullable=False),
        sa.Column("by_user", sa.Text(), nullable=False),
    )
    op.create_index("model_changes_by_model", "model_changes", ["team", "model", "seq"])


def downgrade() -> None:
    """Refuse: journals are not downgraded."""
    raise NotImplementedError("a journal is not downgraded: restore a backup")
