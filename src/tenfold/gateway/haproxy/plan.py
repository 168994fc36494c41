"""What HAProxy serves by itself, as a plan: pure, made from the routing state.

A request is HAProxy's if its service is hot and its caller is known and without limits. All others
go to the gateway, which answers them as it would without HAProxy: unknown tokens and models,
limits, queues, canaries, shadows, overflow, hedges, services without a ready replica.
"""

import re
from collections.abc import Collection
from hashlib import sha256
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from msgspec import Struct

from tenfold.model.service.routing import (
    Replica,
    RoutingState,
    Service,
    TeamLimits,
    TokenDigest,
    models_of,
)

WEIGHT_MAX = 256
PREFIX_BYTES = 1_024
"""Of a body, by which requests with the same beginning find the same replica."""
WITHOUT_TOKEN = "-"
"""Stands for the digest of a request without a token."""
_SAFE_MODEL = re.compile(r"[A-Za-z0-9._:/@+-]+")
_SAFE_PATH = re.compile(r"/[A-Za-z0-9._/-]*")


class Server(NamedTuple):
    """One replica as HAProxy knows it."""

    name: str
    host: str
    port: int
    weight: int
    maxconn: int
    """0 for no limit."""
    is_draining: bool


class HotService(Struct, frozen=True, kw_only=True):
    """A service that HAProxy serves: what only a reload changes, and its servers."""

    name: str
    revision: str
    paths: tuple[str, ...]
    balance: Literal["leastconn", "prefix"]
    session_header: str
    """Empty without session affinity."""
    has_slots: bool
    timeout_s: float
    retries: int
    servers: tuple[tuple[Server, str], ...]
    """Each with the id of its replica."""

    @property
    def structure(self) -> tuple[object, ...]:
        """What cannot be changed without a reload."""
        return (
            self.name,
            self.paths,
            self.balance,
            self.session_header,
            self.has_slots,
            self.timeout_s,
            self.retries,
        )


class Plan(Struct, frozen=True, kw_only=True):
    """All settings of HAProxy."""

    services: tuple[HotService, ...] = ()
    models: dict[str, str] = {}
    """The service of each value of `model`."""
    callers: dict[str, str] = {}
    """The team of each `DIGEST/SERVICE` that may use it."""

    @property
    def structure(self) -> tuple[object, ...]:
        """What cannot be changed without a reload."""
        return tuple(one.structure for one in self.services)


def plan_of(state: RoutingState, now_ms: int) -> Plan:
    """Return what HAProxy serves under a routing state."""
    services = tuple(hot for one in state.services if (hot := hot_service(one)) is not None)
    claims: dict[str, list[str]] = {}
    for service in state.services:
        for model in models_of(service):
            claims.setdefault(model, []).append(service.name)
    names = {one.name for one in services}
    models = {
        model: owners[0]
        for model, owners in claims.items()
        # Which of several services a caller means is for the gateway to say.
        if len(owners) == 1 and owners[0] in names and _SAFE_MODEL.fullmatch(model)
    }
    hot = [one for one in state.services if one.name in names]
    return Plan(services=services, models=models, callers=_callers(state, hot, now_ms))


def hot_service(service: Service) -> HotService | None:
    """Return a service as HAProxy can serve it; None if it takes the gateway."""
    live = [one for one in service.revisions if one.weight > 0]
    paths = tuple(one for one in service.paths if one.startswith("/v1/"))
    if (
        len(live) != 1
        or live[0].is_canary
        or any(one.shadow_percent for one in service.revisions)
        or service.key
        or service.hedge_after_s > 0
        or (service.overflow and not service.slots_per_replica)
        or not paths
        or not all(_SAFE_PATH.fullmatch(one) for one in paths)
    ):
        return None
    servers = [_server(one, service) for one in live[0].replicas]
    if any(one is None for one in servers):
        return None
    return HotService(
        name=service.name,
        revision=live[0].name,
        paths=paths,
        balance="prefix" if service.affinity == "prefix" else "leastconn",
        session_header=service.session_header if service.affinity == "session" else "",
        has_slots=service.slots_per_replica > 0,
        timeout_s=max(service.first_byte_timeout_s, service.idle_timeout_s),
        retries=service.retries_max,
        servers=tuple(
            (server, one.id)
            for server, one in zip(servers, live[0].replicas, strict=True)
            if server is not None
        ),
    )


def server_name(replica: Replica) -> str:
    """Return the name of a replica's server: ids may have any characters."""
    return "r" + sha256(f"{replica.id}\0{replica.url}".encode()).hexdigest()[:16]


def _server(replica: Replica, service: Service) -> Server | None:
    """Return a replica as a server; None if its address is not a plain one."""
    url = urlsplit(replica.url)
    try:
        port = url.port or 80
    except ValueError:
        return None
    host = url.hostname or ""
    if url.scheme != "http" or url.path.rstrip("/") or not host:
        return None
    slots = service.slots_per_replica
    return Server(
        name=server_name(replica),
        host=host,
        port=port,
        weight=min(max(round(replica.weight * 16), 1), WEIGHT_MAX),
        maxconn=max(1, round(slots * replica.weight)) if slots else 0,
        is_draining=replica.state == "draining",
    )


def _callers(state: RoutingState, hot: Collection[Service], now_ms: int) -> dict[str, str]:
    limited = {one.name for one in state.teams if _is_limited(one)}
    found: dict[str, str] = {}
    for service in hot:
        for token in state.tokens:
            if token.team not in limited and _may_use(token, service, now_ms):
                found[f"{token.digest}/{service.name}"] = token.team
        team = state.team_without_token
        if team and team not in limited and (not service.teams or team in service.teams):
            found[f"{WITHOUT_TOKEN}/{service.name}"] = team
    return found


def _is_limited(limits: TeamLimits) -> bool:
    return bool(limits.requests_per_minute or limits.tokens_per_minute or limits.concurrent_max)


def _may_use(token: TokenDigest, service: Service, now_ms: int) -> bool:
    return (
        (not token.services or service.name in token.services)
        and (not service.teams or token.team in service.teams)
        and (token.expires_ms is None or token.expires_ms > now_ms)
    )
