"""Which policy decided when: recorded by each writer, and read for replays."""

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection, func, insert, inspect, select

from tenfold.engine.policy_spans import PolicySpan
from tenfold.journal.append import JournalWriter
from tenfold.journal.tables import CYCLES, POLICIES
from tenfold.model.errors import InputError
from tenfold.model.policy.policy import Policy

_POLICY = msgspec.json.Decoder(Policy)


def note_policy(writer: JournalWriter, policy: Policy) -> None:
    """Record the policy of a writer; call this before its first event."""
    row = {
        "epoch": writer.epoch,
        "first_seq": writer.seq + 1,
        "first_cycle": writer.next_cycle,
        "body": msgspec.json.encode(policy).decode(),
    }
    with writer.writing() as connection:
        connection.execute(insert(POLICIES), row)


def stretches_from(connection: Connection, first: int, last: int | None = None) -> list[PolicySpan]:
    """Return the policy spans of the cycles that follow the events from `first` to `last`.

    A journal from before policies were recorded has none.
    """
    if not inspect(connection).has_table(POLICIES.name):
        return []
    query = select(POLICIES).order_by(POLICIES.c.epoch)
    if last is not None:
        query = query.where(POLICIES.c.first_seq <= last + 1)
    found: list[PolicySpan] = []
    for row in connection.execute(query).mappings():
        found.append(
            PolicySpan(
                first_cycle=1 + _cycles_before(connection, first, row["first_cycle"]),
                first_event=row["first_seq"],
                policy=_decoded(row["epoch"], row["body"]),
            )
        )
    return _since(found, first)


def policy_at(connection: Connection, cycle: int) -> Policy | None:
    """Return the policy of a cycle; None if it was not recorded."""
    query = (
        select(POLICIES.c.epoch, POLICIES.c.body)
        .where(POLICIES.c.first_cycle <= cycle)
        .order_by(POLICIES.c.epoch.desc())
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else _decoded(row[0], row[1])


def _cycles_before(connection: Connection, first: int, number: int) -> int:
    # Cycles before the first event are included only if the record starts with the first event.
    after = CYCLES.c.after_seq >= (0 if first == 1 else first)
    query = select(func.count()).select_from(CYCLES).where(after, CYCLES.c.number < number)
    return connection.execute(query).scalar() or 0


def _since(found: Sequence[PolicySpan], first: int) -> list[PolicySpan]:
    """Drop spans that ended before an event, and cut the one that contains it."""
    at = max((i for i, each in enumerate(found) if each.first_event <= first), default=0)
    return list(found[at:])


def _decoded(epoch: int, body: str) -> Policy:
    try:
        return _POLICY.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InputError(
            "journal-damaged",
            f"cannot read the policy of writer {epoch:,}: {error}",
            "restore the journal from a backup; do not edit it manually",
        ) from None
