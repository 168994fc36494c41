"""What became of a simulated service: every request, replica and scaling decision."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from tenfold.model.service.autoscale import ScalingDecision
from tenfold.model.units import HOUR, SECOND
from tenfold.sim.service.replica import SimReplica

SHED, FAILED, WAITING = -1, -2, -3
"""What stands for the TTFT of a request that has none."""


class ScalingStep(Struct, frozen=True):
    """A decision that changed something."""

    at_ms: int
    ready: int
    starting: int
    """Replicas as the decision found them."""
    decision: ScalingDecision


class ServiceRun(Struct, frozen=True):
    """A finished simulation."""

    arrived_ms: Sequence[int]
    ttft_ms: Sequence[int]
    """By request; negative if it was shed or failed."""
    latency_ms: Sequence[int]
    """Until the last token, of those that were served."""
    replicas: Sequence[SimReplica]
    steps: Sequence[ScalingStep]
    objective_ms: int
    latency_objective_ms: int | None
    end_ms: int
    """The last arrival: replicas are charged until then."""


class ServiceFigures(Struct, frozen=True):
    """The figures of a run, or of a part of it."""

    requests: int
    attainment: float
    """Share of requests that met the objective; others miss."""
    replica_hours: float
    """From order to stop, cold starts and draining included."""
    ttft_p50_s: float | None
    """Of the requests that were served."""
    ttft_p99_s: float | None
    shed: int
    starts: int
    """Replicas that were ordered; those of the warm start are not."""
    stops: int
    """Replicas that were cancelled or drained on order."""


def figures(run: ServiceRun, from_ms: int = 0, until_ms: int | None = None) -> ServiceFigures:
    """Return the figures of the requests that arrive in a part of the run, and of its replicas."""
    end_ms = run.end_ms if until_ms is None else min(until_ms, run.end_ms)
    arrived = np.asarray(run.arrived_ms)
    is_last = until_ms is None
    judged = (arrived >= from_ms) & ((arrived < end_ms) | is_last)
    ttft = np.asarray(run.ttft_ms)[judged]
    served = ttft[ttft >= 0]
    is_met = (ttft >= 0) & (ttft <= run.objective_ms)
    if run.latency_objective_ms is not None:
        is_met &= np.asarray(run.latency_ms)[judged] <= run.latency_objective_ms
    met = int(is_met.sum())
    middle, late = (
        (float(one) / SECOND for one in np.percentile(served, (50, 99)))
        if len(served)
        else (None, None)
    )
    started = [one.ordered_ms for one in run.replicas]
    stopped = [one.stopped_ms for one in run.replicas if not one.has_failed]
    return ServiceFigures(
        requests=len(ttft),
        attainment=met / len(ttft) if len(ttft) else 1.0,
        replica_hours=replica_ms(run, from_ms, end_ms) / HOUR,
        ttft_p50_s=middle,
        ttft_p99_s=late,
        shed=int((ttft == SHED).sum()),
        starts=sum(max(from_ms, 1) <= one and (one < end_ms or is_last) for one in started),
        stops=sum(max(from_ms, 0) <= one and (one < end_ms or is_last) for one in stopped),
    )


def replica_ms(run: ServiceRun, from_ms: int, until_ms: int) -> int:
    """Return the milliseconds for which replicas existed, from their order to their stop."""
    return sum(
        max(
            (until_ms if one.stopped_ms < 0 else min(one.stopped_ms, until_ms))
            - max(one.ordered_ms, from_ms),
            0,
        )
        for one in run.replicas
    )
