"""What a simulation of a service is given: its requests over time, and how it serves them."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from tenfold.model.service.autoscale import AutoscalePolicy, ReplicaRates
from tenfold.model.service.routing import Hold
from tenfold.model.units import SECOND, Millis

_HOLD = Hold()

Rate = Annotated[float, Meta(gt=0, le=1e9)]


class RequestTrace(Struct, frozen=True):
    """Requests in order of arrival; time 0 is the start of the trace."""

    arrived_ms: Sequence[int]
    input_tokens: Sequence[int]
    output_tokens: Sequence[int]

    def part(self, from_ms: int, until_ms: int) -> "RequestTrace":
        """Return the requests that arrive in a time, which becomes the start."""
        kept = [at for at, one in enumerate(self.arrived_ms) if from_ms <= one < until_ms]
        return RequestTrace(
            [self.arrived_ms[at] - from_ms for at in kept],
            [self.input_tokens[at] for at in kept],
            [self.output_tokens[at] for at in kept],
        )


class SimulatedService(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A service file of `tenfold sim autoscale`."""

    slots: Annotated[int, Meta(ge=1, le=100_000)]
    """Requests that a replica serves at a time."""
    prefill_tokens_per_s: Rate
    """Prompt tokens per second of one request in its slot."""
    decode_tokens_per_s: Rate
    """Generated tokens per second of one request in its slot, while all slots are busy."""
    decode_tokens_per_s_alone: Rate | None = None
    """The same while it is alone. With it, `tpot_objective_s` limits the slots that are used."""
    cold_start_s: Annotated[float, Meta(ge=0, le=86_400)] | None = None
    """From the order of a replica until it is ready."""
    cold_start_file: str = ""
    """Or a file of measured ones: one column `cold_start_s`; each start draws one."""
    replicas_min: Annotated[int, Meta(ge=0, le=100_000)] = 1
    replicas_max: Annotated[int, Meta(ge=1, le=100_000)] = 100
    ttft_objective_s: Annotated[float, Meta(gt=0, le=86_400)]
    """A request meets the objective if its first token comes within this time."""
    tpot_objective_s: Annotated[float, Meta(gt=0, le=86_400)] | None = None
    """And if its further tokens come within this time each."""
    latency_objective_s: Annotated[float, Meta(gt=0, le=86_400)] | None = None
    """And if its last token comes within this time."""
    attainment: Annotated[float, Meta(gt=0, lt=1)] = 0.99
    """Share of requests that should meet it."""
    zero_after_s: Annotated[float, Meta(gt=0, le=86_400)] | None = None
    """Time without a request after which `tenfold` scales to zero; None if it is learned."""
    hold_timeout_s: Annotated[float, Meta(gt=0, le=86_400)] = _HOLD.timeout_s
    """A request that waits longer is shed."""
    hold_requests_max: Annotated[int, Meta(ge=0, le=1_000_000_000)] = _HOLD.requests_max
    """Requests that may wait at a time; further ones are shed at once."""
    failures_per_replica_day: Annotated[float, Meta(ge=0, le=1_000_000)] = 0.0
    """Failures of a ready replica: its requests fail, or move on if they had no token yet."""

    @property
    def rates(self) -> ReplicaRates:
        """What a replica does within the objective per token."""
        rates = ReplicaRates(
            slots=self.slots,
            prefill_tokens_per_s=self.prefill_tokens_per_s,
            decode_tokens_per_s=self.decode_tokens_per_s,
            decode_tokens_per_s_alone=self.decode_tokens_per_s_alone,
        )
        return rates.within(self.tpot_objective_s)

    def policy(self, cold_start_ms: Sequence[int], caution: float = 1.0) -> AutoscalePolicy:
        """Return the input of an autoscaler; the cold start is the usual one."""
        ordered = sorted(cold_start_ms)
        return AutoscalePolicy(
            rates=self.rates,
            replicas_min=self.replicas_min,
            replicas_max=self.replicas_max,
            ttft_objective_s=self.ttft_objective_s,
            latency_objective_s=self.latency_objective_s,
            attainment=self.attainment,
            cold_start_ms=Millis(ordered[len(ordered) // 2]),
            zero_after_ms=(
                None if self.zero_after_s is None else Millis(round(self.zero_after_s * SECOND))
            ),
            caution=caution,
        )


def seconds(ms: int) -> float:
    """Return seconds for display."""
    return ms / SECOND
