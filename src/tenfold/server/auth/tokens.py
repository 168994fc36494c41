"""Tokens: 256 random bits, shown once, stored as their SHA-256, expiring and revocable.

Lookups are cached for a few seconds, so that a busy client does not cost a database query per
request. A token revoked here stops working at once; one revoked by another process, within those
seconds.
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
from sqlalchemy import Connection, RowMapping, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from tenfold.journal.store import Store
from tenfold.journal.tables import TOKENS
from tenfold.model.api.tokens import DAYS
from tenfold.model.errors import Refused
from tenfold.model.units import DAY, SECOND
from tenfold.report.reasons.render import Reader

PREFIX = "tf_"
NOTE_S = 0.25
"""How long a request waits for its token's last use to be recorded."""
CACHED_MS = 5 * SECOND
CACHED_MAX = 10_000


class Role(IntEnum):
    """What a token may do; each role includes those before it."""

    viewer = 1
    member = 2
    operator = 3
    admin = 4


class Token(Struct, frozen=True, kw_only=True):
    """The caller. The secret itself is not part of it."""

    id: str
    name: str
    team: str
    role: Role
    created_ms: int
    expires_ms: int
    revoked_ms: int | None = None
    last_used: int | None = None
    """The day of its last use, counted from 1970."""

    @property
    def sees_all_teams(self) -> bool:
        """Whether it may see other teams' jobs."""
        return self.role >= Role.operator

    @property
    def reader(self) -> Reader:
        """For whom reasons are rendered."""
        return Reader(self.team, self.sees_all_teams)


Fence = Callable[[Connection], None]
"""Called in each transaction that changes tokens; it raises if this control plane does not lead."""


def no_fence(connection: Connection) -> None:
    """Let every change pass: no other control plane can write."""


class Tokens:
    """The tokens of one journal; thread-safe."""

    def __init__(self, store: Store, now_ms: Callable[[], int], fence: Fence = no_fence) -> None:
        self._store, self._fence = store, fence
        self.now_ms = now_ms
        self._cache: dict[str, tuple[int, Token]] = {}
        """By digest: when it was read, and the record."""
        self._marking: set[str] = set()
        """Tokens whose use is being recorded, so that a locked journal is asked only once."""
        self._revoked: frozenset[str] = frozenset()
        self._revoked_ms = -CACHED_MS
        """When the revoked tokens were last read, for streams that outlive their token."""

    def create(self, *, name: str, team: str, role: Role, days: float = DAYS) -> tuple[str, Token]:
        """Return a new token, shown only now, and its record."""
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
            self._fence(connection)
            connection.execute(insert(TOKENS), row)
        return secret, token

    def all(self) -> list[Token]:
        """Return all tokens, oldest first, including expired and revoked ones."""
        query = select(TOKENS).order_by(TOKENS.c.created_ms, TOKENS.c.id)
        with self._store.reading() as connection:
            return [_token(row) for row in connection.execute(query).mappings()]

    def digests(self, least: Role) -> list[tuple[str, Token]]:
        """Return the digest and the record of each valid token of a role or a higher one."""
        now_ms = self.now_ms()
        is_valid = (TOKENS.c.revoked_ms.is_(None), TOKENS.c.expires_ms > now_ms)
        query = select(TOKENS).where(*is_valid).order_by(TOKENS.c.created_ms, TOKENS.c.id)
        with self._store.reading() as connection:
            found = [(row["digest"], _token(row)) for row in connection.execute(query).mappings()]
        return [(digest, token) for digest, token in found if token.role >= least]

    def revoke(self, token_id: str) -> Token | None:
        """Revoke a token immediately; return its record, or None if there is none."""
        with self._store.writing() as connection:
            self._fence(connection)
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
        """Tell whether a token has expired or was revoked; makes no query."""
        return token.expires_ms <= self.now_ms() or token.id in self._revoked

    @property
    def is_stale(self) -> bool:
        """Whether the list of revoked tokens is due for a refresh."""
        return not 0 <= self.now_ms() - self._revoked_ms < CACHED_MS

    def refresh_revoked(self) -> None:
        """Read which tokens were revoked, also by other processes; one query serves all streams.

        If the journal does not respond, it is read the next time.
        """
        self._revoked_ms = self.now_ms()
        query = select(TOKENS.c.id).where(TOKENS.c.revoked_ms.is_not(None))
        with suppress(SQLAlchemyError), self._store.reading() as connection:
            self._revoked = frozenset(connection.execute(query).scalars())

    def cached(self, secret: str) -> Token | None:
        """Return the record of a token from the cache; makes no query."""
        entry = self._cache.get(digest_of(secret))
        return entry[1] if entry is not None and self.now_ms() - entry[0] < CACHED_MS else None

    def known(self, secret: str) -> Token | None:
        """Return the last record of a token that was found before, however long ago."""
        entry = self._cache.get(digest_of(secret))
        return None if entry is None else entry[1]

    def find(self, secret: str) -> Token | None:
        """Return the record of a token, valid or not; None if it is unknown."""
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
        """Record the day of use, once a day. A full or slow disk does not block the request."""
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
            with suppress(SQLAlchemyError, Refused), self._store.writing() as connection:
                self._fence(connection)
                change = update(TOKENS).where(TOKENS.c.id == token_id).values(last_used=today)
                connection.execute(change)
        finally:
            self._marking.discard(token_id)


def digest_of(secret: str) -> str:
    """Return the digest of a token, which is what is stored."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def _token(row: RowMapping) -> Token:
    values: dict[str, Any] = {key: value for key, value in row.items() if key != "digest"}
    values["role"] = Role[values["role"]]
    return Token(**values)
