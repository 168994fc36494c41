"""Simulate a service under one autoscaler; `static` is chosen in hindsight."""

from collections.abc import Callable, Sequence
from math import ceil, sqrt

import numpy as np
from msgspec import Struct

from tenfold.decide.autoscale.baselines.static import Static
from tenfold.model.service.autoscale import AutoscalePolicy
from tenfold.model.service.simulated import RequestTrace, SimulatedService
from tenfold.model.units import MINUTE, SECOND
from tenfold.sim.service.run import ServiceFigures, ServiceRun, figures
from tenfold.sim.service.world import ServiceSettings, simulate_service
from tenfold.study.autoscale.policies import AutoscalerName, TickedAutoscaler, by_name, ticked

WARM_MS = 5 * MINUTE
"""The load of this time decides how many replicas are ready at the start, for every policy."""

Done = Callable[[int], None]


class AutoscaleRequest(Struct, frozen=True, kw_only=True):
    """What to simulate."""

    trace: RequestTrace
    service: SimulatedService
    cold_starts_ms: Sequence[int]
    seed: int = 0


class AutoscaleResult(Struct, frozen=True):
    """Figures of a run, and the run."""

    figures: ServiceFigures
    run: ServiceRun
    replicas_static: int | None = None
    """The fixed number that `static` chose."""


def run_autoscaler(
    request: AutoscaleRequest, name: AutoscalerName, done: Done = lambda served: None
) -> AutoscaleResult:
    """Return how the service fares under an autoscaler with its defaults."""
    policy = request.service.policy(request.cold_starts_ms)
    if name == "static":
        replicas, run = smallest_static(request, policy)
        return AutoscaleResult(figures(run), run, replicas)
    run = run_with(request, by_name(name, policy), done=done)
    return AutoscaleResult(figures(run), run)


def run_with(
    request: AutoscaleRequest,
    autoscaler: TickedAutoscaler,
    *,
    warm: int | None = None,
    done: Done = lambda served: None,
) -> ServiceRun:
    """Return the run of a service under an autoscaler, from a warm start."""
    service = request.service
    settings = ServiceSettings(
        rates=service.rates,
        cold_starts_ms=request.cold_starts_ms,
        replicas_min=service.replicas_min,
        replicas_max=service.replicas_max,
        objective_ms=round(service.ttft_objective_s * SECOND),
        latency_objective_ms=_millis(service.latency_objective_s),
        replicas_warm=warm_replicas(request) if warm is None else warm,
        tick_ms=autoscaler.tick_ms,
        hold_ms=round(service.hold_timeout_s * SECOND),
        hold_max=service.hold_requests_max,
        failures_per_replica_day=service.failures_per_replica_day,
        seed=request.seed,
    )
    return simulate_service(request.trace, settings, autoscaler.decide, done)


def smallest_static(
    request: AutoscaleRequest, policy: AutoscalePolicy, from_ms: int = 0
) -> tuple[int, ServiceRun]:
    """Return the smallest fixed number of replicas that meets the objective, and its run.

    If none does, it is the largest. Requests before `from_ms` are not judged.
    """
    runs: dict[int, ServiceRun] = {}

    def meets(replicas: int) -> bool:
        run = run_with(request, ticked(Static(replicas=replicas), policy), warm=replicas)
        runs[replicas] = run
        return figures(run, from_ms).attainment >= request.service.attainment

    low, high = max(policy.replicas_min, 1) - 1, _first_guess(request)
    while high < policy.replicas_max and not meets(high):
        low, high = high, min(2 * high, policy.replicas_max)
    if high == policy.replicas_max:
        meets(high)
    while high - low > 1:
        middle = (low + high) // 2
        if meets(middle):
            high = middle
        else:
            low = middle
    return high, runs[high]


def warm_replicas(request: AutoscaleRequest) -> int:
    """Return how many replicas the first minutes of the trace need."""
    trace, service = request.trace, request.service
    span_ms = min(max(trace.arrived_ms[-1], MINUTE), WARM_MS)
    slots = _work_s(request, WARM_MS) * SECOND / span_ms
    need = ceil((slots + 2 * sqrt(slots)) / service.rates.slots)
    return min(max(need, service.replicas_min, 1), service.replicas_max)


def _first_guess(request: AutoscaleRequest) -> int:
    span_ms = max(request.trace.arrived_ms[-1], 1)
    slots = _work_s(request, span_ms + 1) * SECOND / span_ms
    service = request.service
    low, high = max(service.replicas_min, 1), service.replicas_max
    return min(max(ceil(slots / service.rates.slots), low), high)


def _work_s(request: AutoscaleRequest, until_ms: int) -> float:
    """Return the seconds for which the requests of the first part occupy slots."""
    trace = request.trace
    many = int(np.searchsorted(np.asarray(trace.arrived_ms), until_ms))
    rates = request.service.rates
    return rates.slot_s(sum(trace.input_tokens[:many]), sum(trace.output_tokens[:many]))


def _millis(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * SECOND)
