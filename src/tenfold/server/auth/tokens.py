"""Tokens: 256 random bits, shown once, entry as their SHA-256, expiring and revocable.

What is looked up stays in memory for some seconds, so that a busy client does not cost a
query to the database each time. A token that is revoked here is gone at once; one revoked
by another process, within those seconds.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from threading import Thread
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import RowMapping, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from tenfold.journal.store import Store
from tenfold.journal.tables import TOKENS
from tenfold.model.api.tokens import DAYS
from tenfold.model.units import DAY, SECOND
from tenfold.report.reasons.render import Reader

PREFIX = "tf_"
NOTE_S = 0.25
"""How long a request waits for the note that its token was used."""
CACHED_MS = 5 * SECOND
CACHED_MAX = 10_000


class Role(IntEnum):
    """What a token may do; each role may do all that those before it may."""

    viewer = 1
    member = 2
    operator = 3
    admin = 4


class Token(Struct, frozen=True, kw_only=True):
    """Who asks. The token itself is not part of it."""

    id: str
    name: str
    team: str
    role: Role
    created_ms: int
    expires_ms: int
    revoked_ms: int | None = None
    last_used: int | None = None
    """The day it was last used, counted from 1970."""

    @property
    def sees_all_teams(self) -> bool:
        """Whether jobs of other teams are there for it."""
        return self.role >= Role.operator

    @property
    def reader(self) -> Reader:
        """For whom reasons are rendered."""
        return Reader(self.team, self.sees_all_teams)


class Tokens:
    """The tokens of one journal; used by many threads."""

    def __init__(self, store: Store, now_ms: Callable[[], int]) -> None:
        self._store = store
        self.now_ms = now_ms
        self._cache: dict[str, tuple[int, Token]] = {}
        """By digest: when it was read, and what it is."""
        self._marking: set[str] = set()
        """Tokens whose use is being noted: a journal that is locked is asked once."""
        self._revoked: frozenset[str] = frozenset()
        self._revoked_ms = -CACHED_MS
        """When these were read: all that are revoked, for streams that outlast their token."""

    def create(self, *, name: str, team: str, role: Role, days: float = DAYS) -> tuple[str, Token]:
        """Return a new token, for the one time that it is seen, and its record."""
        secret = PREFIX + secrets.token_urlsafe(32)
        now_ms = self.now_ms()
        token = Token(
            id=f"t-{secrets.token_hex(6)}",
            name=name,
            team=team,
            role=role,
            created_ms=now_ms,
            expires_ms=now_ms + round(days * DAY),
        )
        row = {
            "id": token.id,
            "digest": digest_of(secret),
            "name": name,
            "team": team,
            "role": role.name,
            "created_ms": token.created_ms,
            "expires_ms": token.expires_ms,
        }
        with self._store.writing() as connection:
            connection.execute(insert(TOKENS), row)
        return secret, token

    def all(self) -> list[Token]:
        """Return every token, the oldest first; those that are over as well."""
        query = select(TOKENS).order_by(TOKENS.c.created_ms, TOKENS.c.id)
        with self._store.reading() as connection:
            return [_token(row) for row in connection.execute(query).mappings()]

    def revoke(self, token_id: str) -> Token | None:
        """End a token now; return its record, or None where there is none."""
        with self._store.writing() as connection:
            row = connection.execute(select(TOKENS).where(TOKENS.c.id == token_id)).mappings()
            found = row.one_or_none()
            if found is None:
                return None
            token = _token(found)
            if token.revoked_ms is None:
                token = replace(token, revoked_ms=self.now_ms())
                values: dict[str, Any] = {"revoked_ms": token.revoked_ms}
                connection.execute(update(TOKENS).where(TOKENS.c.id == token_id).values(**values))
            digest: str = found["digest"]
        self._cache.pop(digest, None)
        self._revoked = self._revoked | {token_id}
        return token

    def has_ended(self, token: Token) -> bool:
        """Tell whether a token has come to its end since it was shown; asks nobody."""
        return token.expires_ms <= self.now_ms() or token.id in self._revoked

    @property
    def is_stale(self) -> bool:
        """Whether it is time to `refresh_revoked` again which tokens were revoked."""
        return not 0 <= self.now_ms() - self._revoked_ms < CACHED_MS

    def refresh_revoked(self) -> None:
        """Read which tokens were revoked, by other processes too; one reading serves all streams.

        A journal that does not answer now is read the next time.
        """
        self._revoked_ms = self.now_ms()
        query = select(TOKENS.c.id).where(TOKENS.c.revoked_ms.is_not(None))
        with suppress(SQLAlchemyError), self._store.reading() as connection:
            self._revoked = frozenset(connection.execute(query).scalars())

    def cached(self, secret: str) -> Token | None:
        """Return whose token this is if it was looked up a moment ago; asks nobody."""
        entry = self._cache.get(digest_of(secret))
        return entry[1] if entry is not None and self.now_ms() - entry[0] < CACHED_MS else None

    def find(self, secret: str) -> Token | None:
        """Return whose token this is, over or not; None where it is nobody's."""
        digest = digest_of(secret)
        query = select(TOKENS).where(TOKENS.c.digest == digest)
        with self._store.reading() as connection:
            row = connection.execute(query).mappings().one_or_none()
        if row is None or not hmac.compare_digest(row["digest"], digest):
            return None
        token = self._mark_used(_token(row))
        if len(self._cache) >= CACHED_MAX:
            self._cache.clear()
        self._cache[digest] = (self.now_ms(), token)
        return token

    def _mark_used(self, token: Token) -> Token:
        """Note the day, once a day. A disk that is full or slow does not keep anybody out."""
        today = self.now_ms() // DAY
        if token.last_used == today:
            return token
        if token.id not in self._marking:
            self._marking.add(token.id)
            noting = Thread(target=self._write_used, args=(token.id, today), daemon=True)
            noting.start()
            noting.join(NOTE_S)
        return replace(token, last_used=today)

    def _write_used(self, token_id: str, today: int) -> None:
        try:
            with suppress(SQLAlchemyError), self._store.writing() as connection:
                change = update(TOKENS).where(TOKENS.c.id == token_id).values(last_used=today)
                connection.execute(change)
        finally:
            self._marking.discard(token_id)


def digest_of(secret: str) -> str:
    """Return what is entry of a token."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def _token(row: RowMapping) -> Token:
    values: dict[str, Any] = {key: value for key, value in row.items() if key != "digest"}
    values["role"] = Role[values["role"]]
    return Token(**values)
