"""The tables of a journal: events are authoritative, and the rest is derived or saves time.

Types are those that SQLite and PostgreSQL share. Lists are JSON text, so any tool can read them.
The migrations create these tables; a test compares the two.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

LONG = BigInteger().with_variant(Integer, "sqlite")
"""64 bits on both: SQLite row ids must have the type INTEGER."""

METADATA = MetaData()

EVENTS = Table(
    "events",
    METADATA,
    Column("seq", LONG, primary_key=True, autoincrement=False),
    Column("at_ms", LONG, nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("chain", LargeBinary),
    Column("shared", LONG),
    Index(
        "events_by_shared",
        "shared",
        sqlite_where=text("shared IS NOT NULL"),
        postgresql_where=text("shared IS NOT NULL"),
    ),
)
"""Every event in order; `seq` counts from 1 without gaps.

`chain` is a digest of the event and of the digest before it; older events have none. With `shared`,
`body` has only what differs from other events; the rest is in `shared_texts`.
"""

SHARED_TEXTS = Table(
    "shared_texts",
    METADATA,
    Column("seq", LONG, primary_key=True, autoincrement=False),
    Column("body", Text, nullable=False),
)
"""What events of one commit have in common; `seq` is that of the first of them."""

CHAIN = Table(
    "chain",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("journal", Text, nullable=False),
    Column("first_seq", LONG, nullable=False),
    Column("last_seq", LONG, nullable=False),
    Column("head", LargeBinary, nullable=False),
    Column("tables", LONG),
    Column("copied_seq", LONG),
)
"""One row: a random id of the journal, from which the chain starts; the first event in the chain;
the last event and its digest; the sum of the read tables, unknown after an upgrade; and in a
backup, the last event at that time.
"""

CYCLES = Table(
    "cycles",
    METADATA,
    Column("number", LONG, primary_key=True, autoincrement=False),
    Column("after_seq", LONG, nullable=False),
    Column("at_ms", LONG, nullable=False),
    Column("decider", Text, nullable=False),
    Column("body", Text, nullable=False),
    Index("cycles_by_seq", "after_seq"),
)
"""The decision log: each cycle with the event it followed. Its orders are events."""

SNAPSHOTS = Table(
    "snapshots",
    METADATA,
    Column("seq", LONG, primary_key=True, autoincrement=False),
    Column("digest", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
)
"""The fleet after an event, compressed, with its expected digest."""

LEASE = Table(
    "lease",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("epoch", LONG, nullable=False),
    Column("holder", Text, nullable=False),
    Column("taken_ms", LONG, nullable=False),
    Column("control_plane", Text),
    Column("url", Text),
    Column("executor", Text),
    Column("lease_ms", LONG),
    Column("renewed_ms", LONG),
)
"""One row: the current writer. The next writer increments the epoch, which locks out this one.

Only a control plane that shares the journal has a lease that expires, by the database's clock.
"""

CONTROL_PLANES = Table(
    "control_planes",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("holder", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("seen_ms", LONG, nullable=False),
)
"""The control planes that share this journal: each writes its own row, and no other."""

WRITERS = Table(
    "writers",
    METADATA,
    Column("epoch", LONG, primary_key=True, autoincrement=False),
    Column("first_seq", LONG, nullable=False),
    Column("holder", Text, nullable=False),
    Column("taken_ms", LONG, nullable=False),
)
"""First event of each writer: a cycle interrupted by a crash ends there."""

POLICIES = Table(
    "policies",
    METADATA,
    Column("epoch", LONG, primary_key=True, autoincrement=False),
    Column("first_seq", LONG, nullable=False),
    Column("first_cycle", LONG, nullable=False),
    Column("body", Text, nullable=False),
)
"""The policy of each writer, and its first event and cycle."""

JOBS = Table(
    "jobs",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("seq", LONG, nullable=False),
    Column("number", LONG, nullable=False),
    Column("team", Text, nullable=False),
    Column("user_name", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("sentence", Text, nullable=False),
    Column("fields", Text),
    Column("gpus_milli", LONG, nullable=False),
    Column("submitted_ms", LONG, nullable=False),
    Column("changed_ms", LONG, nullable=False),
    Column("changed_seq", LONG, nullable=False),
    Column("attempts", Integer, nullable=False),
    Index("jobs_by_seq", "seq"),
    Index("jobs_by_team", "team", "seq"),
    Index("jobs_by_state", "state", "seq"),
)
"""Read table: the current state of every job. `seq` is that of its submission."""

ATTEMPTS = Table(
    "attempts",
    METADATA,
    Column("job_id", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("ordered_ms", LONG, nullable=False),
    Column("started_ms", LONG),
    Column("ended_ms", LONG),
    Column("nodes", Text, nullable=False),
    Column("nodes_next", Text),
    Column("exit_code", Integer),
    Column("reason", Text, nullable=False),
    PrimaryKeyConstraint("job_id", "number"),
)
"""Read table: every ordered start and its outcome."""

NODES = Table(
    "nodes",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("seq", LONG, nullable=False),
    Column("site", Text, nullable=False),
    Column("pool", Text, nullable=False),
    Column("accelerator", Text, nullable=False),
    Column("gpus", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("cause", Text, nullable=False),
    Column("changed_ms", LONG, nullable=False),
    Column("sentence", Text, nullable=False, server_default=""),
    Column("acceptance", Text),
    Column("fields", Text),
)
"""Read table: the current state of every node that ever joined."""

EXPORTS = Table(
    "exports",
    METADATA,
    Column("last_seq", LONG, primary_key=True, autoincrement=False),
    Column("first_seq", LONG, nullable=False),
    Column("last_number", LONG, nullable=False),
    Column("file", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("chain", LargeBinary),
    Column("kept", LargeBinary),
    Column("bundle", Text),
)
"""Which events were moved to which bundle, and the digest of the fleet after the last one.

`chain` is the digest of the last moved event, `kept` ends the chain over older events that stayed,
and `bundle` is the digest of the file.
"""

TOKENS = Table(
    "tokens",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("team", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("created_ms", LONG, nullable=False),
    Column("expires_ms", LONG, nullable=False),
    Column("revoked_ms", LONG),
    Column("last_used", LONG),
    Index("tokens_by_digest", "digest", unique=True),
)
"""Tokens: the SHA-256 of each, never the token. `last_used` is in days since 1970.

Not derived from events, so no replay or bundle contains it.
"""

SUBMIT_KEYS = Table(
    "submit_keys",
    METADATA,
    Column("team", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("number", LONG, nullable=False),
    Column("at_ms", LONG, nullable=False),
    PrimaryKeyConstraint("team", "key"),
    Index("submit_keys_by_time", "at_ms"),
)
"""Read table: requests of the last day by idempotency key.

`number` is that of the first job of a request; the others follow it.
"""

MODEL_VERSIONS = Table(
    "model_versions",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("seq", LONG, nullable=False),
    Column("team", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("number", LONG, nullable=False),
    Column("stage", Text, nullable=False),
    Column("registered_ms", LONG, nullable=False),
    Column("removed_ms", LONG),
    Column("body", Text, nullable=False),
    Index("model_versions_by_model", "team", "model", "number"),
)
"""Read table: every registered version of every model; `body` is the version as it was registered.
"""

MODEL_ALIASES = Table(
    "model_aliases",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("team", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("alias", Text, nullable=False),
    Column("number", LONG, nullable=False),
    Column("by_user", Text, nullable=False),
    Column("changed_ms", LONG, nullable=False),
    Index("model_aliases_by_model", "team", "model"),
)
"""Read table: which version each alias names; 0 for an alias that was deleted."""

MODEL_CHANGES = Table(
    "model_changes",
    METADATA,
    Column("seq", LONG, primary_key=True, autoincrement=False),
    Column("at_ms", LONG, nullable=False),
    Column("team", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("number", LONG, nullable=False),
    Column("before", Text, nullable=False),
    Column("by_user", Text, nullable=False),
    Index("model_changes_by_model", "team", "model", "seq"),
)
"""Read table: who registered, moved, staged and removed what, and when."""
