"""What is known of a service's load at one moment: all that an autoscaler may see.

The gateway fills it live and the simulator fills it in virtual time, from the same counters.
Traffic is counted in buckets of equal length: sums only, so the order of requests inside a bucket
cannot matter.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from tenfold.model.units import Millis


class ReplicaCounts(Struct, frozen=True, kw_only=True, gc=False):
    """Replicas by state."""

    ready: int = 0
    """Serving requests, or able to."""
    starting: int = 0
    """Ordered and not ready yet: placed, loading weights, or failing their probe."""
    draining: int = 0
    """Finishing their requests before they stop; they take no new ones."""

    @property
    def wanted(self) -> int:
        """Replicas that serve or will serve, unless told otherwise."""
        return self.ready + self.starting


class LoadBucket(Struct, frozen=True, kw_only=True, gc=False):
    """The requests of one interval."""

    arrived: int = 0
    """Requests that arrived, also those that were later shed."""
    input_tokens: int = 0
    """Prompt tokens of those that arrived."""
    finished: int = 0
    """Requests that ended with a complete answer."""
    output_tokens: int = 0
    """Generated tokens of those that finished."""
    missed: int = 0
    """Requests known in this interval to miss the objective: late first token, shed or failed."""


NO_LOAD = LoadBucket()


class ServiceLoad(Struct, frozen=True, kw_only=True):
    """One service at one moment."""

    replicas: ReplicaCounts
    bucket_ms: Millis
    """Length of a bucket; bucket `n` covers [n * bucket_ms, (n + 1) * bucket_ms)."""
    first_bucket: int = 0
    """Number of the first bucket of `history`."""
    history: Sequence[LoadBucket] = ()
    """Closed buckets without gaps, oldest first. May be shared: it only ever grows at its end."""
    arriving: int = 0
    """Requests that have arrived since the last closed bucket."""
    in_flight: int = 0
    """Requests in a slot of a replica."""
    queued: int = 0
    """Requests that wait for a slot, held or queued."""
    queued_input_tokens: int = 0
    cold_starts_ms: Sequence[int] = ()
    """Measured times from order to ready, oldest first; the recent ones are enough."""
    signals: Mapping[str, float] = {}
    """Means over ready replicas by name: metrics that the replicas themselves report.
A replica that is not ready, or has not reported, is not in the mean."""
