"""Decide how many replicas a service needs.

A decision depends on the load alone. `Memory` saves work between decisions: one built anew from
the same history decides the same.
"""

from collections.abc import Mapping
from math import ceil

import numpy as np
from msgspec import Struct

from tenfold.decide.autoscale.memory import Memory
from tenfold.decide.autoscale.tournament import Tournament
from tenfold.model.reason import Reason, Value
from tenfold.model.service.autoscale import (
    AutoscalePolicy,
    ScalingDecision,
    SignalTarget,
    steps_to,
)
from tenfold.model.service.load import ServiceLoad
from tenfold.model.units import SECOND, Millis

RATE_MS = 60_000
"""Window of the signal `requests-per-s`."""
TOLERANCE = 0.1
"""A signal scales in only if it needs fewer replicas than there are by more than this share."""


class _Need(Struct, frozen=True):
    """Replicas that one view of the load asks for."""

    replicas: int
    reason: Reason


def autoscale(
    load: ServiceLoad, memory: Memory | None, now_ms: Millis, policy: AutoscalePolicy
) -> tuple[ScalingDecision, Memory]:
    """Return how many replicas are wanted now, why, and the memory for the next decision."""
    # The history ends at the last closed bucket; nothing else depends on the time.
    del now_ms
    memory = memory or Memory()
    tournament = memory.upto(load, policy)
    rule = _by_rule(tournament, load, policy)
    if rule is not None and not rule.replicas:
        return _decision(rule, load, policy), memory
    needs = [_by_forecast(tournament, load, policy), _by_backlog(tournament, load, policy)]
    needs += [_by_signal(one, load) for one in policy.signals]
    needs += _by_arrivals(tournament, load)
    if rule is not None:
        needs.append(rule)
    if tournament.is_settling:
        seen_ms = len(load.history) * load.bucket_ms
        needs.append(_Need(load.replicas.wanted, Reason("history-too-short", {"seen_ms": seen_ms})))
    # The first of equals says why.
    return _decision(max(needs, key=lambda one: one.replicas), load, policy), memory


def _decision(need: _Need, load: ServiceLoad, policy: AutoscalePolicy) -> ScalingDecision:
    target = min(max(need.replicas, policy.replicas_min), policy.replicas_max)
    fields: dict[str, Value] = {**need.reason.fields, "replicas": target}
    if target < need.replicas:
        fields |= {"needed_most": need.replicas, "replicas_max": policy.replicas_max}
    elif target > need.replicas:
        fields["replicas_min"] = policy.replicas_min
    start, cancel, drain = steps_to(target, load.replicas.ready, load.replicas.starting)
    reason = Reason(need.reason.code, fields)
    return ScalingDecision(target=target, start=start, cancel=cancel, drain=drain, reason=reason)


def _by_forecast(tournament: Tournament, load: ServiceLoad, policy: AutoscalePolicy) -> _Need:
    """Return what the best settings of the tournament ask for."""
    view = tournament.view()
    busy = tournament.busy_replicas
    if busy > view.target:
        slots = {"slots": view.level}
        return _Need(busy, Reason("load-exceeds-capacity", slots))
    idle_ms = tournament.idle.buckets * load.bucket_ms
    if view.target > view.need:
        held: Mapping[str, Value] = {"needed": view.need, "held_ms": view.hold_ms}
        return _Need(view.target, Reason("scale-in-held", held))
    if view.is_fixed:
        return _Need(view.target, Reason("fixed-replicas-cheapest"))
    if view.is_idle and view.need <= max(policy.replicas_min, view.floor):
        if view.floor > policy.replicas_min:
            return _Need(view.need, Reason("floor-cheapest", {"needed": 0}))
        if view.forecast_need <= policy.replicas_min:
            return _Need(0, Reason("service-idle", {"idle_ms": idle_ms}))
    if view.is_idle:
        return _Need(view.need, Reason("request-expected", {"idle_ms": idle_ms}))
    if view.need > view.forecast_need:
        if view.need == view.floor:
            return _Need(view.need, Reason("floor-cheapest", {"needed": view.forecast_need}))
        return _Need(view.need, Reason("load-exceeds-capacity", {"slots": view.level}))
    expected: Mapping[str, Value] = {
        "slots": view.level,
        "peak": view.peak,
        "within_ms": view.horizon_ms,
    }
    return _Need(view.need, Reason("load-needs-replicas", expected))


def _by_backlog(tournament: Tournament, load: ServiceLoad, policy: AutoscalePolicy) -> _Need:
    """Return replicas that end a queue which is too long to wait in."""
    ready = load.replicas.ready * policy.rates.slots
    present = load.in_flight + load.queued
    replicas = min(load.queued, 1)
    if load.queued > 0.5 * ready * tournament.demand.patience:
        drained = tournament.drained(np.array([float(present)]), np.array([float(ready)]))
        replicas = max(int(drained[0]), replicas)
    return _Need(replicas, Reason("backlog-needs-replicas", {"queued": load.queued}))


def _by_rule(tournament: Tournament, load: ServiceLoad, policy: AutoscalePolicy) -> _Need | None:
    """Return what the stated idle time asks for, of a service that may scale to zero."""
    if policy.replicas_min or policy.zero_after_ms is None:
        return None
    idle_ms = tournament.idle.buckets * load.bucket_ms
    fields: Mapping[str, Value] = {"idle_ms": idle_ms}
    is_idle = not (load.arriving or load.in_flight or load.queued)
    if is_idle and idle_ms >= policy.zero_after_ms:
        return _Need(0, Reason("service-idle", fields))
    return _Need(1, Reason("request-expected", fields)) if tournament.was_called else None


def _by_arrivals(tournament: Tournament, load: ServiceLoad) -> list[_Need]:
    """Return the replicas there are, if requests came after a pause that no bucket shows yet."""
    if not load.arriving or not tournament.idle.buckets or tournament.can_wait:
        return []
    held = {"needed": tournament.view().target, "held_ms": int(load.bucket_ms)}
    return [_Need(load.replicas.wanted, Reason("scale-in-held", held))]


def _by_signal(target: SignalTarget, load: ServiceLoad) -> _Need:
    value, needed = _signal(target, load)
    have = load.replicas.wanted
    if (1 - TOLERANCE) * have <= needed < have:
        needed = have
    fields: Mapping[str, Value] = {
        "signal": target.name if target.kind == "mean" else target.kind,
        "value": value,
        "target": float(target.target),
    }
    return _Need(needed, Reason("signal-above-target", fields))


def _signal(target: SignalTarget, load: ServiceLoad) -> tuple[float, int]:
    """Return a signal per replica, and replicas with which it is at its target."""
    ready = load.replicas.ready
    match target.kind:
        case "concurrency":
            value = float(load.in_flight + load.queued)
            return value / max(ready, 1), ceil(value / target.target)
        case "queue":
            value = float(load.queued)
            return value / max(ready, 1), ready + ceil(value / target.target) if value else 0
        case "requests-per-s":
            recent = load.history[-max(RATE_MS // load.bucket_ms, 1) :]
            seconds = max(len(recent), 1) * load.bucket_ms / SECOND
            value = sum(one.arrived for one in recent) / seconds
            return value / max(ready, 1), ceil(value / target.target)
        case "mean":
            # Replicas that are not ready have no part in the mean, and nothing waits for them.
            value = load.signals.get(target.name, 0.0)
            return value, ceil(ready * value / target.target - 1e-9)
