"""Access keys and teams, as requests are checked against them."""

from typing import Protocol

from msgspec import Struct

ANONYMOUS = ""
ALL_USERS = "http://acs.amazonaws.com/groups/global/AllUsers"
AUTHENTICATED_USERS = "http://acs.amazonaws.com/groups/global/AuthenticatedUsers"


class Team(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who owns buckets, and how much it may store; 0 is no limit."""

    name: str
    display_name: str = ""
    email: str = ""
    quota_bytes: int = 0
    quota_objects: int = 0
    buckets_max: int = 1_000


class AccessKey(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pair of keys. The secret is stored: a signature cannot be checked without it."""

    id: str
    secret: str
    team: str
    name: str = ""
    created_ms: int = 0
    is_revoked: bool = False
    is_read_only: bool = False
    is_admin: bool = False
    token: str = ""
    """The token of a control plane that it ends with; empty if it depends on none."""
    expires_ms: int = 0
    """When that token expires; 0 for never."""


class Keys(Protocol):
    """The access keys and teams that are valid now."""

    def key(self, key_id: str) -> AccessKey | None:
        """Return a key that is not revoked."""
        ...

    def team(self, name: str) -> Team | None:
        """Return a team by name."""
        ...

    def team_by_email(self, email: str) -> Team | None:
        """Return a team by its e-mail address."""
        ...


class Caller(Struct, frozen=True):
    """Who sends a request: a team through one of its keys, or anyone."""

    team: str = ANONYMOUS
    key_id: str = ""
    is_read_only: bool = False

    @property
    def is_anonymous(self) -> bool:
        """Whether the request is not signed."""
        return not self.team
