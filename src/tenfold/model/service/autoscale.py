"""How a service is to be scaled, and what was decided."""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.reason import Reason
from tenfold.model.units import SECOND, Millis

DECIDE_MS = 2 * SECOND
"""Between two decisions, live and simulated: how long a held request may go unnoticed."""

ZERO_AFTER_MS = Millis(300 * SECOND)
"""Idle time before which a service does not scale to zero, where its file does not say."""

SignalKind = Literal["concurrency", "requests-per-s", "queue", "mean"]
"""`concurrency`, `requests-per-s` and `queue` are totals of the load itself; the target is an
amount per replica. `mean` is a named signal of `ServiceLoad.signals`, which the target bounds."""


class SignalTarget(Struct, frozen=True, kw_only=True):
    """Scale out so that a signal stays at its target, whatever the traffic forecast says."""

    kind: SignalKind
    target: float
    name: str = ""
    """The signal, for kind `mean`: a metric of the replicas."""


class ReplicaRates(Struct, frozen=True, kw_only=True):
    """What one replica does: requests at once, and the rates at which it serves each of them."""

    slots: int
    """Requests that a replica serves at the same time; further ones wait."""
    prefill_tokens_per_s: float
    """Prompt tokens per second of one request in its slot."""
    decode_tokens_per_s: float
    """Generated tokens per second of one request in its slot, while all slots are busy."""
    decode_tokens_per_s_alone: float | None = None
    """The same while the other slots are free; None if it is no faster."""

    def token_s(self, requests: int) -> float:
        """Return the seconds per generated token while a replica serves so many requests.

        Engines generate one token for every request in each step, and a step takes longer by the
        same time for each request: from alone to busy, the time grows on a line.
        """
        busy_s = 1 / self.decode_tokens_per_s
        if self.decode_tokens_per_s_alone is None or self.slots == 1:
            return busy_s
        alone_s = 1 / self.decode_tokens_per_s_alone
        return alone_s + (busy_s - alone_s) * (requests - 1) / (self.slots - 1)

    def within(self, tpot_objective_s: float | None) -> "ReplicaRates":
        """Return the rates with as many slots as leave the time per token within an objective."""
        slots = self.slots
        while tpot_objective_s is not None and slots > 1:
            if self.token_s(slots) <= tpot_objective_s * (1 + 1e-9):
                break
            slots -= 1
        if slots == self.slots:
            return self
        return replace(self, slots=slots, decode_tokens_per_s=1 / self.token_s(slots))

    def slot_s(self, input_tokens: float, output_tokens: float) -> float:
        """Return the seconds that requests with these tokens occupy slots: their work."""
        return input_tokens / self.prefill_tokens_per_s + output_tokens / self.decode_tokens_per_s


class AutoscalePolicy(Struct, frozen=True, kw_only=True):
    """How to scale one service."""

    rates: ReplicaRates
    replicas_min: int = 1
    """0 allows scale to zero."""
    replicas_max: int = 10
    ttft_objective_s: float = 2.0
    """A request meets the objective if its first token comes within this time."""
    latency_objective_s: float | None = None
    """And if its last token comes within this time."""
    attainment: float = 0.99
    """Share of requests that must meet the objective."""
    cold_start_ms: Millis = Millis(60_000)
    """Assumed time from order to ready, until cold starts were measured."""
    zero_after_ms: Millis | None = None
    """Time without a request after which a service that may scale to zero does, and not before;
    None if it is learned: from `ZERO_AFTER_MS` on, once a request is unlikely."""
    signals: tuple[SignalTarget, ...] = ()
    """Further signals; the one that needs the most replicas decides."""
    caution: float = 1.0
    """Above 1 uses less of the allowed misses, and costs more replica-hours."""

    @property
    def idle_least_ms(self) -> Millis:
        """Return how long a service is idle at least before it has no replicas."""
        return ZERO_AFTER_MS if self.zero_after_ms is None else self.zero_after_ms


class ScalingDecision(Struct, frozen=True, kw_only=True):
    """How many replicas are wanted, and what to do about it now."""

    target: int
    """Replicas that should be ready or starting."""
    start: int = 0
    """Replicas to order."""
    cancel: int = 0
    """Starting replicas to stop before any ready one; take the one ordered last first."""
    drain: int = 0
    """Ready replicas to drain."""
    reason: Reason


def steps_to(target: int, ready: int, starting: int) -> tuple[int, int, int]:
    """Return (start, cancel, drain) that lead to `target` replicas."""
    surplus = ready + starting - target
    if surplus <= 0:
        return -surplus, 0, 0
    cancel = min(surplus, starting)
    return 0, cancel, surplus - cancel
