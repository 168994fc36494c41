"""Who calls: the team of a token, found by the token's digest."""

from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

from tenfold.gateway.admit.refusals import RequestRefused
from tenfold.model.service.routing import RoutingState, Service, TokenDigest

SECRET_CHARACTERS_MAX = 512


class Caller(NamedTuple):
    """The team of a request, and the services that its token is limited to."""

    team: str
    services: frozenset[str] | None = None
    """None for all that the team may use."""

    def may_use(self, service: Service) -> bool:
        """Tell whether it may use a service."""
        return (self.services is None or service.name in self.services) and (
            not service.teams or self.team in service.teams
        )


class Identities:
    """The tokens of a routing state."""

    def __init__(self, state: RoutingState | None = None) -> None:
        tokens = () if state is None else state.tokens
        self._tokens: Mapping[str, TokenDigest] = {one.digest: one for one in tokens}
        self._callers: Mapping[str, Caller] = {
            one.digest: Caller(one.team, frozenset(one.services) or None) for one in tokens
        }
        team = "" if state is None else state.team_without_token
        self._without_token = Caller(team) if team else None

    def find(self, authorization: str, now_ms: int) -> Caller:
        """Return who sent an `Authorization` header; raise if it is missing or unknown."""
        if not authorization:
            if self._without_token is not None:
                return self._without_token
            raise RequestRefused("no_api_key", "no API key; send `Authorization: Bearer TOKEN`")
        scheme, _, secret = authorization.partition(" ")
        secret = secret.strip()
        if scheme.lower() != "bearer" or not 0 < len(secret) <= SECRET_CHARACTERS_MAX:
            raise _unknown()
        digest = sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
        token = self._tokens.get(digest)
        if token is None or (token.expires_ms is not None and token.expires_ms <= now_ms):
            raise _unknown()
        return self._callers[digest]


def _unknown() -> RequestRefused:
    return RequestRefused("invalid_api_key", "unknown or expired API key")
