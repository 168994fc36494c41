"""Routing state: what a gateway needs to know to send requests to replicas.

It comes from a file or from the control plane, always whole. It holds digests of tokens, never
tokens, and names of API keys, never keys: whoever reads it can call nothing with it.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from tenfold.model.strings import CONTROL, END, FolderName, Name

URL = rf"^https?://[A-Za-z0-9._\[\]:-]+(?:/[^\s?#{CONTROL}]*)?{END}"
DIGEST = rf"^[0-9a-f]{{64}}{END}"
HEADER = rf"^[A-Za-z0-9-]+{END}"

Url = Annotated[str, Meta(min_length=8, max_length=2_000, pattern=URL)]
"""An address without query or credentials; a path is put before the path of each request."""
Digest = Annotated[str, Meta(pattern=DIGEST)]
"""SHA-256 of a token, in hexadecimal digits."""
UrlPath = Annotated[str, Meta(max_length=200, pattern=rf"^/[^\s?#{CONTROL}]*{END}")]
Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Percent = Annotated[float, Meta(ge=0, le=100)]
Usd = Annotated[float, Meta(ge=0, le=1e9)]
Weight = Annotated[float, Meta(ge=0, le=1_000_000)]


class Replica(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One process that answers requests."""

    id: Name
    """Unique in its service."""
    url: Url
    """Its address; the path of a request is put behind it."""
    state: Literal["ready", "draining"] = "ready"
    """A draining replica finishes what it has and gets no new requests."""
    weight: Annotated[float, Meta(gt=0, le=1_000)] = 1.0
    """Its speed relative to the other replicas of the revision."""
    site: Annotated[str, Meta(max_length=200)] = ""
    """Where it runs; for people."""


class Revision(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One version of a service, with its share of the requests."""

    name: Name
    """Unique in its service."""
    weight: Weight = 1.0
    """Its share is its weight over the sum of the weights; 0 gets no requests."""
    shadow_percent: Percent = 0.0
    """Requests of the others that are sent to it as well; its answers are discarded."""
    is_canary: bool = False
    """Whether the `rollback` rules of the service apply to it."""
    replicas: tuple[Replica, ...] = ()
    """Its replicas."""


class Hold(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How requests wait while no replica is ready, or all are busy."""

    requests_max: Count = 1_000
    """Requests that wait at a time; 0 refuses at once."""
    timeout_s: Seconds = 300.0
    """How long a request waits; longer than a cold start takes."""


class Rollback(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """When a canary loses its share; compared with the other revisions in the same window."""

    requests_min: Annotated[int, Meta(ge=1, le=1_000_000)] = 20
    """Requests of the canary in the window before it is judged."""
    window_s: Seconds = 60.0
    """Length of the window."""
    error_percent_max: Percent = 5.0
    """Failed requests of the canary, in percent, beyond those of the other revisions."""
    miss_percent_max: Percent = 20.0
    """Requests beyond an objective, in percent, beyond those of the other revisions."""


class Overflow(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Another place that answers the same requests: another site, or an external endpoint."""

    name: Name
    """Unique in its service."""
    url: Url
    """Its address."""
    model: Annotated[str, Meta(max_length=200)] = ""
    """The name of the model there; empty for the same."""
    key: Annotated[str, Meta(max_length=200)] = ""
    """The name of an API key that the gateway has."""
    usd_per_million_input_tokens: Usd = 0.0
    """Price of prompts."""
    usd_per_million_output_tokens: Usd = 0.0
    """Price of answers."""
    usd_per_hour_max: Usd | None = None
    """Maximum spend over the last hour; once it is reached, nothing more is sent there."""
    after_wait_s: Annotated[float, Meta(ge=0, le=86_400)] = 5.0
    """Requests go there while the expected wait is longer than this."""
    requests_max: Count = 100
    """Maximum concurrent requests there."""


class Service(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A service: which requests belong to it, and where they go."""

    name: FolderName
    """The name used in `X-Tenfold-Service` and `/services/NAME/`."""
    models: tuple[Name, ...] = ()
    """Accepted values of `model`; empty for the name of the service."""
    teams: tuple[FolderName, ...] = ()
    """Teams that may use it; empty for every team."""
    paths: tuple[UrlPath, ...] = ("/v1/",)
    """Path prefixes that are forwarded; `/` for all, as for a plain HTTP service."""
    revisions: tuple[Revision, ...] = ()
    """Its versions, which share the requests by weight."""
    slots_per_replica: Count = 0
    """Concurrent requests per replica of weight 1; the rest queue in the gateway. 0: no limit."""
    affinity: Literal["none", "session", "prefix"] = "prefix"
    """What keeps requests on one replica while that is among the least loaded."""
    session_header: Annotated[str, Meta(max_length=100, pattern=HEADER)] = "X-Session-Id"
    """The header that names a session, for the affinity `session`."""
    hold: Hold = Hold()
    """How requests wait."""
    rollback: Rollback = Rollback()
    """When a canary loses its share."""
    overflow: tuple[Overflow, ...] = ()
    """Where requests go when the wait is too long; the cheapest first."""
    ttft_objective_s: Seconds | None = None
    """Time to the first byte of the answer, as measured by the gateway."""
    tpot_objective_s: Seconds | None = None
    """Time per token of a streamed answer after its first byte, in the mean of the answer."""
    latency_objective_s: Seconds | None = None
    """Time to the last byte of the answer, as measured by the gateway."""
    retries_max: Annotated[int, Meta(ge=0, le=10)] = 2
    """Further attempts, all before the first byte of an answer was sent to the client."""
    hedge_after_s: Annotated[float, Meta(ge=0, le=3_600)] = 0.0
    """When a second replica is asked as well, if no byte has come; 0 for never."""
    hedge_percent_max: Percent = 5.0
    """Requests that are sent twice, in percent of all."""
    first_byte_timeout_s: Seconds = 600.0
    """Until an attempt without a byte has failed."""
    idle_timeout_s: Seconds = 120.0
    """Maximum time between two chunks of a response."""
    key: Annotated[str, Meta(max_length=200)] = ""
    """The name of an API key that the replicas ask for."""


class InferenceLimits(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What a team of a policy may use, over all services; 0 means no limit."""

    priority: Annotated[int, Meta(ge=-1_000, le=1_000)] = 0
    requests_per_minute: Count = 0
    tokens_per_minute: Count = 0
    concurrent_max: Count = 0


class TeamLimits(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a team may use, over all services; 0 means no limit."""

    name: FolderName
    """The team."""
    weight: Annotated[float, Meta(gt=0, le=1_000_000)] = 1.0
    """Its share of a busy service against other waiting teams of the same priority."""
    priority: Annotated[int, Meta(ge=-1_000, le=1_000)] = 0
    """Waiting requests of a higher priority go first."""
    requests_per_minute: Count = 0
    """Requests of every kind."""
    tokens_per_minute: Count = 0
    """Tokens of prompts and answers."""
    concurrent_max: Count = 0
    """Requests at a time, including those that wait."""


class TokenDigest(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A token that clients may use, by its digest."""

    digest: Digest
    """SHA-256 of the token, in hexadecimal digits."""
    team: FolderName
    """Whose requests it makes."""
    services: tuple[FolderName, ...] = ()
    """Services that it may use; empty for all that its team may use."""
    expires_ms: int | None = None
    """When it ends, in milliseconds since 1970; without it, never."""


class RoutingState(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Everything a gateway routes by; a later version replaces it whole."""

    version: Annotated[int, Meta(ge=0)] = 0
    """Grows with every change, so that a gateway can wait for the next."""
    services: tuple[Service, ...] = ()
    """The services."""
    teams: tuple[TeamLimits, ...] = ()
    """Teams that are not listed have the defaults."""
    tokens: tuple[TokenDigest, ...] = ()
    """Tokens that clients may use."""
    team_without_token: Annotated[str, Meta(max_length=80)] = ""
    """The team of requests without a token; if empty, they are rejected."""


def models_of(service: Service) -> tuple[str, ...]:
    """Return the values of `model` that name a service."""
    return service.models or (service.name,)
