"""Hybrid burst: rent nodes for a job only if it then ends early enough to be worth it.

A decision is a function of the state and changes nothing itself. Its orders become part of the
state, so deciding again on an unchanged input orders nothing: there is no churn.
"""

from collections.abc import Iterable, Sequence
from math import ceil

from tenfold.model.market.burst import (
    BurstDecision,
    BurstJob,
    BurstPolicy,
    BurstRefusal,
    BurstState,
    ReleaseNode,
    RentedNode,
    RentNodes,
    Zone,
)
from tenfold.model.reason import Reason
from tenfold.model.units import HOUR, SECOND, usd_micros

GBIT_PER_GB = 8.0


def decide_burst(
    jobs: Sequence[BurstJob], zones: Sequence[Zone], policy: BurstPolicy, state: BurstState
) -> BurstDecision:
    """Return which nodes to rent and release now, and why other jobs get none."""
    served = {node.job for node in state.nodes if node.job}
    waiting = [job for job in jobs if job.id not in served]
    room = _Room(policy, state)
    rents: list[RentNodes] = []
    refusals: list[BurstRefusal] = []
    for job in sorted(waiting, key=_urgency):
        found = _rent(job, zones, policy, state, room)
        if isinstance(found, Reason):
            refusals.append(BurstRefusal(job=job.id, reason=found))
            continue
        room.take(found)
        rents.append(found)
    releases = _releases(state, policy)
    return BurstDecision(rents=tuple(rents), releases=releases, refusals=tuple(refusals))


class _Room:
    """What is left of the budget, of the nodes, and of the changes of this window."""

    def __init__(self, policy: BurstPolicy, state: BurstState) -> None:
        used = state.spent_usd_micros + state.committed_usd_micros
        self.usd_micros = usd_micros(policy.budget_usd) - used
        self.nodes = policy.nodes_max - len(state.nodes)
        since = state.now_ms - round(policy.window_s * SECOND)
        self.changes = policy.changes_max - sum(at > since for at in state.rented_ms)

    def take(self, rent: RentNodes) -> None:
        """Set aside what a rent needs."""
        self.usd_micros -= rent.usd_micros
        self.nodes -= rent.nodes
        self.changes -= rent.nodes


def _urgency(job: BurstJob) -> tuple[int, int, str]:
    deadline = job.deadline_ms
    return (deadline if deadline is not None else 1 << 62, job.submitted_ms, job.id)


def offer_of(job: BurstJob, zones: Sequence[Zone], now_ms: int) -> RentNodes | None:
    """Return the cheapest way to rent for a job, whatever it saves; None where no zone fits."""
    offers = [_offer(job, zone, now_ms) for zone in zones if _fits(job, zone)]
    return min(offers, key=lambda one: (one.usd_micros, one.end_ms, one.zone), default=None)


def _rent(
    job: BurstJob, zones: Sequence[Zone], policy: BurstPolicy, state: BurstState, room: _Room
) -> RentNodes | Reason:
    """Return the cheapest rent that is worth it, or the reason against the best zone."""
    if not late_on_own_nodes(job, policy):
        return Reason("burst-not-needed", {})
    fitting = [zone for zone in zones if _fits(job, zone)]
    if not fitting:
        return Reason("burst-no-zone", {})
    retry_ms = round(policy.retry_s * SECOND)
    open_zones = [
        zone
        for zone in fitting
        if state.now_ms - state.failed_ms.get(zone.name, -retry_ms - 1) > retry_ms
    ]
    if not open_zones:
        return Reason("burst-no-capacity", {"zones": len(fitting)})
    offers = sorted(
        (_offer(job, zone, state.now_ms) for zone in open_zones),
        key=lambda one: (one.usd_micros, one.end_ms, one.zone),
    )
    against = [(_against(job, one, policy, room), one) for one in offers]
    chosen = next((one for reason, one in against if reason is None), None)
    if chosen is not None:
        return chosen
    return next(reason for reason, _ in against if reason is not None)


def late_on_own_nodes(job: BurstJob, policy: BurstPolicy) -> bool:
    """Return whether your own nodes would end it too late."""
    if job.own_end_ms is None:
        return True
    if job.deadline_ms is not None:
        return job.own_end_ms > job.deadline_ms
    start_ms = job.own_end_ms - round(job.run_s * SECOND)
    return start_ms - job.submitted_ms > policy.wait_max_s * SECOND


def _fits(job: BurstJob, zone: Zone) -> bool:
    names = (zone.accelerator, *zone.also)
    return (not job.accelerators or any(one in job.accelerators for one in names)) and all(
        tag in zone.tags for tag in job.needs
    )


def _offer(job: BurstJob, zone: Zone, now_ms: int) -> RentNodes:
    """Return what a rent would cost, and when the job would end."""
    nodes = ceil(job.gpus / zone.gpus_per_node)
    staging_s = job.data_gb * GBIT_PER_GB / zone.gbps
    # Data is staged onto the nodes, so they are paid for meanwhile.
    busy_s = zone.startup_s + staging_s + job.run_s
    rent = ceil(nodes * zone.usd_micros_per_hour * busy_s * SECOND / HOUR)
    end_ms = now_ms + round(busy_s * SECOND)
    saves_s = 0.0 if job.own_end_ms is None else (job.own_end_ms - end_ms) / SECOND
    return RentNodes(
        job=job.id,
        zone=zone.name,
        nodes=nodes,
        usd_micros=rent + usd_micros(job.results_gb * zone.egress_usd_per_gb),
        end_ms=end_ms,
        saves_s=saves_s,
    )


def _against(job: BurstJob, rent: RentNodes, policy: BurstPolicy, room: _Room) -> Reason | None:
    """Return why a rent is not worth it or not allowed; None if it is both."""
    late_s = 0.0 if job.deadline_ms is None else (rent.end_ms - job.deadline_ms) / SECOND
    if job.own_end_ms is not None and rent.saves_s <= policy.gain_min_s:
        return Reason(
            "burst-staging-exceeds-benefit", {"later_ms": max(0, round(-rent.saves_s * SECOND))}
        )
    if late_s > 0:
        return Reason("burst-too-late", {"late_ms": round(late_s * SECOND)})
    if rent.nodes > room.nodes:
        return Reason("burst-too-many-nodes", {"needs": rent.nodes, "free": max(0, room.nodes)})
    if rent.usd_micros > room.usd_micros:
        return Reason(
            "burst-over-budget",
            {"usd": rent.usd_micros / 1e6, "left": max(0, room.usd_micros) / 1e6},
        )
    if rent.nodes > room.changes:
        return Reason("burst-changes-used-up", {"window_ms": round(policy.window_s * SECOND)})
    return None


def _releases(state: BurstState, policy: BurstPolicy) -> tuple[ReleaseNode, ...]:
    """Return the nodes that have been idle for long enough, or for which the money is gone."""
    idle_ms = round(policy.idle_s * SECOND)
    is_spent = state.spent_usd_micros >= usd_micros(policy.budget_usd)
    return tuple(
        ReleaseNode(node=node.id, because="budget spent" if is_spent else "idle")
        for node in _idle(state.nodes)
        if is_spent or state.now_ms - (node.idle_since_ms or state.now_ms) >= idle_ms
    )


def _idle(nodes: Iterable[RentedNode]) -> list[RentedNode]:
    return [node for node in nodes if node.idle_since_ms is not None and not node.job]
