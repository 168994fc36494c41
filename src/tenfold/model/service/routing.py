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
    """Its base URL; the path of each request is appended."""
    state: Literal["ready", "draining"] = "ready"
    """A draining replica finishes its requests and gets no new ones."""
    weight: Annotated[float, Meta(gt=0, le=1_000)] = 1.0
    """Its speed relative to the other replicas of the revision."""
    site: Annotated[str, Meta(max_length=200)] = ""
    """Where it runs; informational only."""


class Revision(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One version of a service, with its share of the requests."""

    name: Name
    """Unique in its service."""
    weight: Weight = 1.0
    """Its share is its weight over the sum of the weights; 0 gets no requests."""
    shadow_percent: Percent = 0.0
    """Percentage of requests to the other revisions that are mirrored to this one; its responses
    are discarded."""
    is_canary: bool = False
    """Whether the `rollback` rules of the service apply to it."""
    replicas: tuple[Replica, ...] = ()
    """Its replicas."""


class Hold(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How requests wait while no replica is ready, or all are busy."""

    requests_max: Count = 1_000
    """Maximum number of queued requests; 0 rejects requests instead of queueing them."""
    timeout_s: Seconds = 300.0
    """Maximum time in the queue; set it to longer than a cold start."""


class Rollback(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """When a canary loses its share; compared with the other revisions in the same window."""

    requests_min: Annotated[int, Meta(ge=1, le=1_000_000)] = 20
    """Minimum number of requests to the canary in the window before it is evaluated."""
    window_s: Seconds = 60.0
    """Length of the window."""
    error_percent_max: Percent = 5.0
    """Percentage points by which the canary's error rate may exceed that of the other revisions."""
    miss_percent_max: Percent = 20.0
    """Percentage points by which the canary's share of requests that miss an objective may exceed
    that of the other revisions."""


class Overflow(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Another place that answers the same requests: another site, or an external endpoint."""

    name: Name
    """Unique in its service."""
    url: Url
    """Its address."""
    model: Annotated[str, Meta(max_length=200)] = ""
    """Name of the model at this endpoint; if empty, the same name."""
    key: Annotated[str, Meta(max_length=200)] = ""
    """Name of the API key to send, from the gateway's keys file."""
    usd_per_million_input_tokens: Usd = 0.0
    """Price of input tokens."""
    usd_per_million_output_tokens: Usd = 0.0
    """Price of output tokens."""
    usd_per_hour_max: Usd | None = None
    """Maximum spend over the last hour; once it is reached, no more requests are sent."""
    after_wait_s: Annotated[float, Meta(ge=0, le=86_400)] = 5.0
    """Requests overflow while the expected wait is longer than this."""
    requests_max: Count = 100
    """Maximum number of concurrent requests."""


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
    """Its revisions; requests are split between them by weight."""
    slots_per_replica: Count = 0
    """Concurrent requests per replica of weight 1; the rest queue in the gateway. 0: no limit."""
    affinity: Literal["none", "session", "prefix"] = "prefix"
    """What keeps related requests on the same replica, as long as it is among the least loaded."""
    session_header: Annotated[str, Meta(max_length=100, pattern=HEADER)] = "X-Session-Id"
    """Header that identifies a session, for the affinity `session`."""
    hold: Hold = Hold()
    """Limits of the queue."""
    rollback: Rollback = Rollback()
    """When a canary is rolled back."""
    overflow: tuple[Overflow, ...] = ()
    """Where requests go when the wait is too long; cheapest first."""
    ttft_objective_s: Seconds | None = None
    """Objective for the time to the first byte of a response, measured at the gateway."""
    tpot_objective_s: Seconds | None = None
    """Objective for the mean time per token of a streamed response, after its first byte."""
    latency_objective_s: Seconds | None = None
    """Objective for the time to the last byte of a response, measured at the gateway."""
    retries_max: Annotated[int, Meta(ge=0, le=10)] = 2
    """Maximum number of retries; nothing is retried once the first byte was sent to the client."""
    hedge_after_s: Annotated[float, Meta(ge=0, le=3_600)] = 0.0
    """Hedging delay: time without a response byte after which the request is also sent to a second
    replica; 0 disables hedging."""
    hedge_percent_max: Percent = 5.0
    """Maximum percentage of requests that are hedged."""
    first_byte_timeout_s: Seconds = 600.0
    """Time without a response byte after which an attempt fails."""
    idle_timeout_s: Seconds = 120.0
    """Maximum time between two chunks of a response."""
    key: Annotated[str, Meta(max_length=200)] = ""
    """Name of the API key that the replicas require, from the gateway's keys file."""


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
    """Share of a busy service, relative to other queued teams of the same priority."""
    priority: Annotated[int, Meta(ge=-1_000, le=1_000)] = 0
    """Queued requests with a higher priority go first."""
    requests_per_minute: Count = 0
    """Maximum number of requests per minute."""
    tokens_per_minute: Count = 0
    """Maximum number of input and output tokens per minute."""
    concurrent_max: Count = 0
    """Maximum number of concurrent requests, including queued ones."""


class TokenDigest(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A token that clients may use, by its digest."""

    digest: Digest
    """SHA-256 of the token, in hexadecimal digits."""
    team: FolderName
    """Team that requests with this token belong to."""
    services: tuple[FolderName, ...] = ()
    """Services that the token may use; empty for all services of its team."""
    expires_ms: int | None = None
    """When the token expires, in milliseconds since the Unix epoch; by default, never."""


class RoutingState(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Everything a gateway routes by; a later version replaces it whole."""

    version: Annotated[int, Meta(ge=0)] = 0
    """Increases with every change, so that a gateway can wait for the next one."""
    services: tuple[Service, ...] = ()
    """The services."""
    teams: tuple[TeamLimits, ...] = ()
    """Limits of teams; teams that are not listed have the defaults."""
    tokens: tuple[TokenDigest, ...] = ()
    """Tokens that clients may use."""
    team_without_token: Annotated[str, Meta(max_length=80)] = ""
    """The team of requests without a token; if empty, they are rejected."""


def models_of(service: Service) -> tuple[str, ...]:
    """Return the values of `model` that name a service."""
    return service.models or (service.name,)
