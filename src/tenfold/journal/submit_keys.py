"""Find requests by idempotency key."""

from sqlalchemy import select

from tenfold.journal.rows import KeyRow
from tenfold.journal.store import Store
from tenfold.journal.tables import SUBMIT_KEYS


def find_key(store: Store, team: str, key: str) -> KeyRow | None:
    """Return the request of a team with a key; None if there is none."""
    named = (SUBMIT_KEYS.c.team == team, SUBMIT_KEYS.c.key == key)
    with store.reading() as connection:
        row = connection.execute(select(SUBMIT_KEYS).where(*named)).mappings().one_or_none()
    return None if row is None else KeyRow(**row)


def latest_keys(store: Store, most: int) -> list[KeyRow]:
    """Return the latest requests with a key, oldest first."""
    query = select(SUBMIT_KEYS).order_by(SUBMIT_KEYS.c.at_ms.desc()).limit(most)
    with store.reading() as connection:
        rows = [KeyRow(**row) for row in connection.execute(query).mappings()]
    return rows[::-1]
