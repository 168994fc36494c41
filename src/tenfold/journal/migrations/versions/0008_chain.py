"""A digest chain over events, its head, and the sum of the read tables."""

from secrets import token_hex

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

LONG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the columns; events that are there stay outside the chain, which begins after them."""
    op.add_column("events", sa.Column("chain", sa.LargeBinary()))
    op.add_column("exports", sa.Column("chain", sa.LargeBinary()))
    op.add_column("exports", sa.Column("kept", sa.LargeBinary()))
    op.add_column("exports", sa.Column("bundle", sa.Text()))
    table = op.create_table(
        "chain",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("journal", sa.Text(), nullable=False),
        sa.Column("first_seq", LONG, nullable=False),
        sa.Column("last_seq", LONG, nullable=False),
        sa.Column("head", sa.LargeBinary(), nullable=False),
        sa.Column("tables", LONG),
        sa.Column("copied_seq", LONG),
    )
    last = max(_number("SELECT max(seq) FROM events"), _number("SELECT max(last_seq) FROM exports"))
    rows = sum(
        _number(f"SELECT count(*) FROM {name}")
        for name in ("jobs", "attempts", "nodes", "submit_keys")
    )
    journal = token_hex(16)
    row = {
        "id": 1,
        "journal": journal,
        "first_seq": last + 1,
        "last_seq": last,
        "head": bytes.fromhex(journal),
        # The first start of a writer adds up the rows that are there.
        "tables": None if rows else 0,
    }
    op.bulk_insert(table, [row])


def downgrade() -> None:
    """Refuse: journals are not downgraded."""
    raise NotImplementedError("a journal is not downgraded: restore a backup")


def _number(query: str) -> int:
    return op.get_bind().execute(sa.text(query)).scalar() or 0
