"""What knowing the future could reach: an oracle that orders replicas ahead of their cold start.

The oracle plans for a share of the slots that requests would occupy if none waited, keeps a replica
through a gap that is shorter than its cold start, and is then simulated like every policy. The
smallest share that meets the objective is its cost: reachable, so not below the true optimum. The
bound below everything is the work itself in full replicas.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.autoscale.traces import Case
from tenfold.model.reason import Reason
from tenfold.model.service.autoscale import ScalingDecision, steps_to
from tenfold.model.service.load import ServiceLoad
from tenfold.model.units import HOUR, SECOND, Millis
from tenfold.study.autoscale.policies import TickedAutoscaler

BUCKET_MS = 10 * SECOND


def work_hours(case: Case) -> float:
    """Return the replica-hours of the second part if every slot were always busy."""
    arrived = np.asarray(case.trace.arrived_ms)
    return float(_slot_ms(case)[arrived >= case.split_ms].sum()) / case.service.slots / HOUR


def planned(case: Case, share: float, cold_ms: int) -> NDArray[np.int64]:
    """Return replicas by bucket for a share of the slots that would be busy without waits."""
    peak = _peaks(case)
    need = np.ceil(peak * share / case.service.slots).astype(np.int64)
    need = np.clip(need, case.service.replicas_min, case.service.replicas_max)
    return _kept_through_gaps(need, -(-cold_ms // BUCKET_MS))


def following(plan: NDArray[np.int64], lead_ms: int) -> TickedAutoscaler:
    """Return the autoscaler that follows a plan, as much ahead as a start takes."""
    ahead = -(-lead_ms // BUCKET_MS) + 1
    padded = np.concatenate([plan, np.full(ahead, plan[-1])])
    highest = np.lib.stride_tricks.sliding_window_view(padded, ahead + 1).max(axis=1).tolist()

    def decide(load: ServiceLoad, now_ms: Millis) -> ScalingDecision:
        target = highest[min(now_ms // BUCKET_MS, len(highest) - 1)]
        start, cancel, drain = steps_to(target, load.replicas.ready, load.replicas.starting)
        reason = Reason("baseline-target", {"policy": "oracle", "replicas": target})
        return ScalingDecision(
            target=target, start=start, cancel=cancel, drain=drain, reason=reason
        )

    return TickedAutoscaler(decide, BUCKET_MS)


def smallest(meets: Callable[[float], bool], low: float, high: float, steps: int) -> float:
    """Return about the smallest value that meets a condition, by halving."""
    for _ in range(steps):
        middle = (low + high) / 2
        if meets(middle):
            high = middle
        else:
            low = middle
    return high


def _slot_ms(case: Case) -> NDArray[np.float64]:
    service, trace = case.service, case.trace
    return (
        np.asarray(trace.input_tokens) / service.prefill_tokens_per_s
        + np.asarray(trace.output_tokens) / service.decode_tokens_per_s
    ) * SECOND


def _peaks(case: Case) -> NDArray[np.int64]:
    """Return the most slots busy at a time in each bucket, if no request waited."""
    start = np.asarray(case.trace.arrived_ms)
    ends = start + np.rint(_slot_ms(case)).astype(np.int64)
    times = np.concatenate([start, ends])
    change = np.concatenate([np.ones(len(start)), -np.ones(len(ends))])
    order = np.lexsort((change, times))
    busy = np.cumsum(change[order])
    bucket = times[order] // BUCKET_MS
    peak = np.zeros(bucket[-1] + 1)
    np.maximum.at(peak, bucket, busy)
    # What is busy when a bucket begins is busy in it.
    last = np.searchsorted(bucket, np.arange(len(peak)), side="left") - 1
    return np.maximum(peak, np.where(last >= 0, busy[last], 0)).astype(np.int64)


def _kept_through_gaps(need: NDArray[np.int64], gap: int) -> NDArray[np.int64]:
    kept = np.zeros_like(need)
    for level in range(1, int(need.max(initial=0)) + 1):
        is_on = need >= level
        at = np.flatnonzero(is_on)
        for before in np.flatnonzero((np.diff(at) > 1) & (np.diff(at) <= gap)):
            is_on[at[before] : at[before + 1]] = True
        kept += is_on
    return kept
