"""Tokens: create, list and revoke them."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from tenfold.model.strings import FolderName

RoleName = Literal["viewer", "member", "operator", "admin"]
"""Each role includes those before it."""
DAYS = 90
"""Default lifetime in days."""
DAYS_MAX = 3_650


class CreateToken(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The token to create."""

    name: FolderName
    team: FolderName
    role: RoleName = "member"
    days: Annotated[float, Meta(gt=0, le=DAYS_MAX)] = DAYS


class Token(Struct, frozen=True, kw_only=True):
    """A token without its secret."""

    id: str
    name: str
    team: str
    role: str
    created_at: str | None
    expires_at: str | None
    revoked_at: str | None
    last_used_on: str | None
    """The day, in UTC."""


class NewToken(Struct, frozen=True, kw_only=True):
    """A new token with its secret, which is shown only once."""

    token: str
    record: Token


class Tokens(Struct, frozen=True, kw_only=True):
    """All tokens, oldest first."""

    tokens: tuple[Token, ...]
