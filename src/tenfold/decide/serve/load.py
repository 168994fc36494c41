"""Make the load of a service from the counters of its gateways.

Counters only grow while a gateway runs. The difference of two readings is spread evenly over the
time between them, so that a missed reading makes neither a hole nor a spike. A new gateway, and
the first reading after a restart of the control plane, only set the mark; after a restart of a
gateway its counters are differences to zero.
"""

from collections.abc import Sequence

from msgspec import Struct

from tenfold.model.service.load import NO_LOAD, LoadBucket, ReplicaCounts, ServiceLoad
from tenfold.model.service.traffic import GatewayTraffic, ServiceTraffic
from tenfold.model.units import SECOND, Millis

BUCKET_MS = Millis(10 * SECOND)
LATE_MS = 3 * BUCKET_MS
"""How long a bucket waits for a gateway that does not answer; what it counts later is cut to the
time from then on."""
FORGOTTEN_MS = 60 * SECOND
"""A gateway that was silent for so long no longer counts as having requests in service."""
BUCKETS_MAX = 8_640
"""A day: what a policy may look back on."""
_NO_REPLICAS = ReplicaCounts()


class Counted(Struct, frozen=True, kw_only=True):
    """The counters of a service at one gateway, in the order of `LoadBucket`."""

    arrived: int = 0
    input_tokens: int = 0
    finished: int = 0
    output_tokens: int = 0
    missed: int = 0

    def since(self, before: "Counted") -> tuple[int, ...]:
        """Return what was counted since an earlier reading, never less than nothing."""
        return tuple(
            max(0, getattr(self, name) - getattr(before, name)) for name in self.__struct_fields__
        )


ZERO = Counted()


class _Mark(Struct, frozen=True):
    """The last reading of one gateway."""

    gateway_id: str
    at_ms: Millis
    counted: Counted
    in_service: int = 0
    waiting: int = 0
    waiting_input_tokens: int = 0


class LoadHistory:
    """The load of one service over time, from readings in the order in which they were made."""

    def __init__(self, since_ms: Millis, bucket_ms: Millis = BUCKET_MS) -> None:
        self._bucket_ms = bucket_ms
        self._first = since_ms // bucket_ms
        self._closed: list[LoadBucket] = []
        self._open: dict[int, list[int]] = {}
        self._marks: dict[str, _Mark] = {}
        self._since_ms = since_ms

    def read(self, gateway: str, traffic: GatewayTraffic, service: str, now_ms: Millis) -> None:
        """Add a reading of a gateway; `now_ms` is when it was made, by our own clock."""
        one = next((one for one in traffic.services if one.name == service), None)
        counted = ZERO if one is None else counted_of(one)
        before = self._marks.get(gateway)
        if before is not None:
            since_ms = before.at_ms
            base = before.counted
            if before.gateway_id != traffic.gateway_id:
                # It has counted from zero since it started, which was after the last reading.
                base = ZERO
                uptime_ms = max(0, traffic.at_ms - traffic.started_ms)
                since_ms = Millis(max(since_ms, now_ms - uptime_ms))
            self._spread(counted.since(base), since_ms, now_ms)
        self._marks[gateway] = _Mark(
            traffic.gateway_id,
            now_ms,
            counted,
            0 if one is None else one.outstanding_requests,
            0 if one is None else one.waiting_requests,
            0 if one is None else round(one.waiting_requests * one.input_tokens_per_request),
        )

    def covers_ms(self, now_ms: Millis) -> Millis:
        """Return how far back the history goes."""
        return Millis(max(0, now_ms - self._since_ms)) if self._marks else Millis(0)

    def load(self, now_ms: Millis) -> ServiceLoad | None:
        """Return the load now, without replicas; None before the first reading."""
        if not self._marks:
            return None
        self._close(now_ms)
        answering = [one for one in self._marks.values() if now_ms - one.at_ms < FORGOTTEN_MS]
        return ServiceLoad(
            replicas=_NO_REPLICAS,
            bucket_ms=self._bucket_ms,
            first_bucket=self._first,
            history=self._closed,
            arriving=sum(counts[0] for counts in self._open.values()),
            in_flight=sum(one.in_service for one in answering),
            queued=sum(one.waiting for one in answering),
            queued_input_tokens=sum(one.waiting_input_tokens for one in answering),
        )

    def _spread(self, counts: Sequence[int], since_ms: int, now_ms: int) -> None:
        """Spread counts over the buckets between two readings, by time."""
        bucket_ms, closed_ms = self._bucket_ms, self._next * self._bucket_ms
        span_ms = max(1, now_ms - since_ms)
        from_ms = max(since_ms, closed_ms)
        # What belongs to closed buckets is lost: the rate stays right, and no spike is made.
        left = [count * max(1, now_ms - from_ms) // span_ms for count in counts]
        left_ms = max(1, now_ms - from_ms)
        at_ms = min(from_ms, now_ms - 1)
        while at_ms < now_ms:
            bucket = at_ms // bucket_ms
            until_ms = min(now_ms, (bucket + 1) * bucket_ms)
            part_ms = until_ms - at_ms
            totals = self._open.setdefault(bucket, [0] * len(left))
            for place, count in enumerate(left):
                share = count * part_ms // left_ms
                totals[place] += share
                left[place] -= share
            left_ms -= part_ms
            at_ms = until_ms

    def _close(self, now_ms: int) -> None:
        """Close the buckets that every gateway has counted, or that waited long enough."""
        waited_for = [one.at_ms for one in self._marks.values() if now_ms - one.at_ms < LATE_MS]
        until = min([now_ms, *waited_for]) // self._bucket_ms
        while self._next < until:
            counts = self._open.pop(self._next, None)
            self._closed.append(NO_LOAD if counts is None else _bucket(counts))
        if len(self._closed) > 2 * BUCKETS_MAX:
            gone = len(self._closed) - BUCKETS_MAX
            self._first += gone
            # A new list: the old one may be in use, and only ever grows.
            self._closed = self._closed[gone:]

    @property
    def _next(self) -> int:
        """The number of the first bucket that is not closed."""
        return self._first + len(self._closed)


def _bucket(counts: Sequence[int]) -> LoadBucket:
    arrived, input_tokens, finished, output_tokens, missed = counts
    return LoadBucket(
        arrived=arrived,
        input_tokens=input_tokens,
        finished=finished,
        output_tokens=output_tokens,
        missed=missed,
    )


def counted_of(one: ServiceTraffic) -> Counted:
    """Return the counters of a service at a gateway."""
    return Counted(
        arrived=one.arrivals,
        input_tokens=one.arrived_input_tokens,
        finished=one.ended,
        output_tokens=one.ended_output_tokens,
        missed=one.late + one.failed + one.shed,
    )
