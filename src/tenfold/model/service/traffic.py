"""The traffic of each service as a gateway counts it; `ServiceLoad` is made from it.

Counters only grow while a gateway runs: whoever reads them takes the difference to the last
reading, so a missed reading loses nothing. A new `gateway_id` means that they began at zero again.
"""

from typing import Literal

from msgspec import Struct

TTFT_BOUNDS_MS = (
    *(10, 25, 50, 100, 250, 500, 1_000),
    *(2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000),
)
"""Upper bounds of the buckets of `ttft_counts`; the last bucket has none."""


class ReplicaTraffic(Struct, frozen=True, kw_only=True):
    """One replica, now."""

    id: str
    requests: int
    """Requests that it has not answered yet."""
    tokens: int
    """Tokens expected of those: prompts that wait for a first byte, and answers."""
    breaker: Literal["closed", "open", "half-open"]
    """Open: it failed, and gets no requests for a while."""


class RevisionTraffic(Struct, frozen=True, kw_only=True):
    """One revision; counters."""

    name: str
    requests: int
    """Requests that ended, of every kind."""
    errors: int
    """Those that failed through the replica: no answer, a broken one, or a status of 500 to 599."""
    misses: int
    """Answered requests beyond an objective of the service."""
    ttft_counts: tuple[int, ...]
    """Answered requests by time to the first byte; see `TTFT_BOUNDS_MS`."""
    ttft_ms_sum: int
    replicas: tuple[ReplicaTraffic, ...]


class RolledBack(Struct, frozen=True, kw_only=True):
    """A canary that lost its share here, until the routing state changes its revision."""

    service: str
    revision: str
    at_ms: int
    cause: Literal["errors", "objective"]
    requests: int
    """Of the canary, in the window."""
    percent: float
    """Of those, failed or late."""
    percent_others: float


class OverflowTraffic(Struct, frozen=True, kw_only=True):
    """One place that requests overflow to; counters, except `outstanding`."""

    name: str
    outstanding: int
    requests: int
    errors: int
    input_tokens: int
    output_tokens: int
    usd_micros: int


class ServiceTraffic(Struct, frozen=True, kw_only=True):
    """One service."""

    name: str
    # Counters.
    arrivals: int
    """Requests that may use the service, whatever became of them."""
    arrived_input_tokens: int
    """Tokens of their prompts: estimated from bytes, with the ratio that replicas report."""
    arrived_output_tokens: int
    """Tokens expected of their answers when they arrived."""
    output_tokens: int
    """Tokens that were answered, those of answers under way included."""
    ended: int
    """Requests that were answered, by a replica or elsewhere."""
    ended_output_tokens: int
    """Tokens of the answers that ended: over `ended`, the mean answer."""
    late: int
    """Requests beyond an objective; counted once, when that is known."""
    failed: int
    """Requests that got an error of the gateway although they were accepted."""
    shed: int
    """Requests refused because the service was too busy: queue full, or waited too long."""
    limited: int
    """Requests refused because of their team's limits."""
    retries: int
    hedges: int
    busy_request_ms: int
    """Milliseconds that requests spent in replicas, added up: divided by the time, the mean number
    of requests in service."""
    # Now.
    outstanding_requests: int
    """In replicas."""
    outstanding_tokens: int
    waiting_requests: int
    """In the queue: held without a ready replica, or waiting for a slot."""
    waiting_tokens: int
    oldest_wait_ms: int
    tokens_per_request: float
    """Prompt and answer of recent requests, mean."""
    input_tokens_per_request: float
    output_tokens_per_request: float
    revisions: tuple[RevisionTraffic, ...]
    overflow: tuple[OverflowTraffic, ...]


class GatewayTraffic(Struct, frozen=True, kw_only=True):
    """`GET /gateway/load` on the admin address of a gateway."""

    gateway_id: str
    """Another one after each start."""
    started_ms: int
    at_ms: int
    routing_version: int
    services: tuple[ServiceTraffic, ...]
    rolled_back: tuple[RolledBack, ...]
