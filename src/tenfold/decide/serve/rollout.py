"""How a new revision gets the requests of a service: by steps, back, or all of them.

A revision gets a share only as far as its ready replicas carry it, so the share that gateways see
may be smaller than the one that is recorded.
"""

from math import ceil

from msgspec import UNSET

from tenfold.fleet.services import ALL
from tenfold.model.events import RolloutAdvanced, ServiceEvent, ServicePromoted, ServiceRolledBack
from tenfold.model.reason import Reason
from tenfold.model.service.spec import Canary, millis
from tenfold.model.service.state import ServiceState
from tenfold.model.service.step import ServiceSeen
from tenfold.model.service.traffic import GatewayTraffic, RolledBack
from tenfold.model.units import Millis

FAILURES_MAX = 3
"""Failures in a row of a new revision's replicas after which it is rolled back. An assumption."""
EJECTED_ERRORS_MIN, EJECTED_PERCENT_MIN = 5, 50.0
"""Failed requests of a revision, and their share of all since it began, with which it is rolled
back once every replica is ejected. Assumptions: one killed replica causes fewer."""
_ONE_STEP = Canary(steps=(ALL,))


def rollout(state: ServiceState, seen: ServiceSeen, now_ms: Millis) -> ServiceEvent | None:
    """Return what happens to the rollout of a service now, if anything."""
    revision = state.revision(state.canary)
    if revision is None or state.removed_ms is not None:
        return None
    for one in seen.rolled_back:
        if one.revision == state.canary:
            return _back(state, _as_reason(one), now_ms)
    if revision.failures >= FAILURES_MAX and not state.ready(state.canary):
        return _back(state, Reason("canary-not-ready", {"failures": revision.failures}), now_ms)
    if state.weight >= ALL:
        if _is_large_enough(state) and not _is_kept(state, now_ms):
            return ServicePromoted(now_ms, state.name, state.team, state.canary)
        return None
    if state.is_held:
        return None
    weight = _next_weight(state, now_ms)
    if weight is None:
        return None
    return RolloutAdvanced(now_ms, state.name, state.team, state.canary, weight, UNSET)


def ejected(traffic: GatewayTraffic, service: str) -> list[RolledBack]:
    """Return the revisions of a service of which a gateway has ejected every replica.

    A breaker keeps requests away from a replica that fails, so a canary that only fails never
    gets the requests by which the gateway would judge it.
    """
    revisions = [one for each in traffic.services if each.name == service for one in each.revisions]
    found: list[RolledBack] = []
    for one in revisions:
        is_out = bool(one.replicas) and all(each.breaker != "closed" for each in one.replicas)
        others = [each for each in revisions if each is not one]
        share = _percent(one.errors, one.requests)
        if is_out and one.errors >= EJECTED_ERRORS_MIN and share >= EJECTED_PERCENT_MIN:
            found.append(
                RolledBack(
                    service=service,
                    revision=one.name,
                    at_ms=traffic.at_ms,
                    cause="errors",
                    requests=one.requests,
                    percent=share,
                    percent_others=_percent(
                        sum(each.errors for each in others), sum(each.requests for each in others)
                    ),
                )
            )
    return found


def _percent(part: int, whole: int) -> float:
    return ALL * part / whole if whole else 0.0


def replicas_of(state: ServiceState, revision: str) -> int:
    """Return how many replicas of a revision are needed."""
    if state.removed_ms is not None:
        return 0
    if revision == state.current:
        return state.target
    if revision != state.canary:
        return 0
    share = max(state.weight, shadow_percent(state))
    if _is_blue_green(state):
        share = ALL
    # A canary at zero replicas could never be judged.
    return max(1, min(state.spec.most, ceil(state.target * share / ALL)))


def shadow_percent(state: ServiceState) -> float:
    """Return the share of the requests that is copied to a new revision, in percent."""
    canary = state.spec.canary
    return 0.0 if canary is None or state.weight > 0 else canary.shadow_percent


def weights(state: ServiceState) -> dict[str, float]:
    """Return the share of each revision in percent, as far as ready replicas carry it."""
    if not state.canary:
        return {state.current: ALL}
    new, old = state.ready(state.canary), state.ready(state.current)
    if not new:
        return {state.current: ALL, state.canary: 0.0}
    if not old:
        # Nothing else answers.
        return {state.current: 0.0, state.canary: ALL}
    carried = ALL * new / (new + old)
    if state.weight >= ALL and _is_blue_green(state) and _is_large_enough(state):
        # The other one is kept, and gets nothing.
        carried = ALL
    share = min(state.weight, carried)
    return {state.current: ALL - share, state.canary: share}


def _next_weight(state: ServiceState, now_ms: Millis) -> float | None:
    """Return the weight of the next step; None if this step is not over."""
    canary = state.spec.canary or _ONE_STEP
    since = [one.ready_ms for one in state.of(state.canary) if one.serves and one.ready_ms]
    if not since:
        return None
    pause_s = canary.step_s
    if shadow_percent(state):
        pause_s = canary.shadow_s
    elif canary.is_blue_green:
        pause_s = 0.0
    if now_ms - max(state.weight_ms, min(since)) < millis(pause_s):
        return None
    if canary.is_blue_green:
        return ALL if _is_large_enough(state) else None
    higher = [one for one in canary.steps if one > state.weight]
    if higher:
        return higher[0]
    return ALL if canary.is_promoted else None


def _is_blue_green(state: ServiceState) -> bool:
    return state.spec.canary is not None and state.spec.canary.is_blue_green


def _is_large_enough(state: ServiceState) -> bool:
    return state.ready(state.canary) >= replicas_of(state, state.canary)


def _is_kept(state: ServiceState, now_ms: Millis) -> bool:
    """Return whether the revision before stays for now, although it gets no requests."""
    canary = state.spec.canary
    if canary is None or not canary.is_blue_green or state.is_promoting:
        return False
    return not canary.is_promoted or now_ms - state.weight_ms < millis(canary.step_s)


def _back(state: ServiceState, reason: Reason, now_ms: Millis) -> ServiceRolledBack:
    return ServiceRolledBack(
        now_ms, state.name, state.team, state.canary, state.current, reason, UNSET
    )


def _as_reason(one: RolledBack) -> Reason:
    code = "canary-errors" if one.cause == "errors" else "canary-late"
    fields = {
        "requests": one.requests,
        "percent": one.percent,
        "percent_others": one.percent_others,
    }
    return Reason(code, fields)
