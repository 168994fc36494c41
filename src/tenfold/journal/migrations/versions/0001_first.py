"""First tables: events, cycles, snapshots, the lease, and the read tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

LONG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables of a new journal."""
    _event_tables()
    _read_tables()


def downgrade() -> None:
    """Refuse: journals are not downgraded."""
    raise NotImplementedError("a journal is not downgraded: restore a backup")


def _long(name: str, *, key: bool = False) -> "sa.Column[int]":
    return sa.Column(name, LONG, primary_key=key, autoincrement=False, nullable=False)


def _text(name: str, *, key: bool = False) -> "sa.Column[str]":
    return sa.Column(name, sa.Text(), primary_key=key, nullable=False)


def _event_tables() -> None:
    op.create_table("events", _long("seq", key=True), _long("at_ms"), _text("kind"), _text("body"))
    op.create_table(
        "cycles",
        _long("number", key=True),
        _long("after_seq"),
        _long("at_ms"),
        _text("decider"),
        _text("body"),
    )
    op.create_index("cycles_by_seq", "cycles", ["after_seq"])
    op.create_table(
        "snapshots",
        _long("seq", key=True),
        _text("digest"),
        sa.Column("body", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "lease",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        _long("epoch"),
        _text("holder"),
        _long("taken_ms"),
    )
    op.create_table(
        "writers",
        _long("epoch", key=True),
        _long("first_seq"),
        _text("holder"),
        _long("taken_ms"),
    )


def _read_tables() -> None:
    op.create_table(
        "jobs",
        _text("id", key=True),
        _long("seq"),
        _long("number"),
        *(_text(name) for name in ("team", "user_name", "name", "state", "reason", "sentence")),
        *(_long(name) for name in ("gpus_milli", "submitted_ms", "changed_ms", "changed_seq")),
        sa.Column("attempts", sa.Integer(), nullable=False),
    )
    op.create_index("jobs_by_seq", "jobs", ["seq"])
    op.create_index("jobs_by_team", "jobs", ["team", "seq"])
    op.create_table(
        "attempts",
        _text("job_id"),
        sa.Column("number", sa.Integer(), nullable=False),
        _long("ordered_ms"),
        sa.Column("started_ms", LONG),
        sa.Column("ended_ms", LONG),
        _text("nodes"),
        sa.Column("nodes_next", sa.Text()),
        sa.Column("exit_code", sa.Integer()),
        _text("reason"),
        sa.PrimaryKeyConstraint("job_id", "number"),
    )
    op.create_table(
        "nodes",
        _text("id", key=True),
        _long("seq"),
        *(_text(name) for name in ("site", "pool", "accelerator")),
        sa.Column("gpus", sa.Integer(), nullable=False),
        *(_text(name) for name in ("state", "cause")),
        _long("changed_ms"),
    )
