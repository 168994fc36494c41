"""From a policy's name and settings to the decider that places jobs by it.

Deciders are imported when needed: a run has one of them, and the others would
cost a short command as much time as its own work.
"""

from collections.abc import Callable, Iterable
from functools import partial

from msgspec import UNSET

from tenfold.decide.place.indexed import IndexedDecider
from tenfold.fleet.capacity import Capacity
from tenfold.fleet.fleet import FleetView
from tenfold.fleet.topology.topology import powered_capacity
from tenfold.model.job.job import Job, Shape
from tenfold.model.policy.policy import Placement, Policy
from tenfold.model.units import MINUTE

LAS_REVIEW_MS = MINUTE
CapacityFactory = Callable[[FleetView], Capacity]


def placing_decider(
    policy: Policy,
    restart_cost_ms: int = 0,
    *,
    shapes: Iterable[Shape] | None = None,
    has_gates: bool = True,
) -> IndexedDecider:
    """Return a fresh decider for a policy.

    Where all `shapes` that will ever come request only whole GPUs, places are
    found by bitsets, which choose the same and are quicker. Where no job will come that depends
    on others or waits for nodes to join, `has_gates` spares the look at each.
    """
    placer = _decider_for(policy, restart_cost_ms, shapes)
    if policy.sites is not UNSET and _nodes_are_interchangeable(policy):
        from tenfold.decide.place.cheapest_site import CheapestSite  # noqa: PLC0415

        placer = CheapestSite(placer, policy.sites, policy.govern)
    if not has_gates:
        return placer
    if _nodes_are_interchangeable(policy):
        from tenfold.decide.place.avoid_failed_nodes import AvoidFailedNodes  # noqa: PLC0415
        from tenfold.decide.place.spread_replicas import SpreadReplicas  # noqa: PLC0415

        placer = SpreadReplicas(AvoidFailedNodes(placer))
    from tenfold.decide.place.capacity_gate import CapacityGate  # noqa: PLC0415

    placer = CapacityGate(placer)
    if policy.name == "governed":
        return placer
    from tenfold.decide.place.dependency_gate import DependencyGate  # noqa: PLC0415

    return DependencyGate(placer)


def _nodes_are_interchangeable(policy: Policy) -> bool:
    """Tell whether any free node of a pool is as good as another, as far as others can see."""
    has_windows = policy.govern is not None and bool(policy.govern.windows)
    return policy.name != "slurm" and not has_windows


def _decider_for(
    policy: Policy, restart_cost_ms: int, shapes: Iterable[Shape] | None
) -> IndexedDecider:
    capacity_factory = capacity_of(policy.placement, shapes)
    match policy.name:
        case "fifo" | "sjf":
            return _queue(policy, capacity_factory)
        case "srtf" | "srsf":
            return _repack(policy, restart_cost_ms, capacity_factory)
        case "slurm":
            return _slurm(policy)
        case "governed":
            return _governed(policy)
        case "las" | "edf" | "fair" | "tenfold":
            return _ranked(policy, capacity_factory)


def capacity_of(placement: Placement, shapes: Iterable[Shape] | None) -> CapacityFactory:
    """Return how a decider is to build its index of free capacity."""
    if placement != "fgd" and shapes is not None and all(_is_plain(shape) for shape in shapes):
        return partial(_within_power, otherwise=Capacity.of)
    from tenfold.decide.place.score.scored import make_capacity  # noqa: PLC0415

    return partial(_within_power, otherwise=partial(make_capacity, placement=placement))


def _within_power(view: FleetView, otherwise: CapacityFactory) -> Capacity:
    """Return capacity within the limits of racks, which come before any score."""
    return powered_capacity(view) or otherwise(view)


def _queue(policy: Policy, capacity_factory: CapacityFactory) -> IndexedDecider:
    from tenfold.decide.place.ranked.fifo import StrictOrderPlacer  # noqa: PLC0415

    key = _duration if policy.name == "sjf" else _arrival
    return StrictOrderPlacer(policy.name, key, capacity_of=capacity_factory)


def _repack(
    policy: Policy, restart_cost_ms: int, capacity_factory: CapacityFactory
) -> IndexedDecider:
    from tenfold.decide.place.ranked.orders import ShortestRemaining  # noqa: PLC0415
    from tenfold.decide.place.ranked.repack import RepackPlacer  # noqa: PLC0415

    by_gpus = policy.name == "srsf"
    order = ShortestRemaining(by_gpus=by_gpus, restart_cost_ms=restart_cost_ms)
    return RepackPlacer(policy.name, order, capacity_of=capacity_factory)


def _slurm(policy: Policy) -> IndexedDecider:
    from tenfold.decide.place.slurm.slurm import SlurmPlacer  # noqa: PLC0415
    from tenfold.model.policy.slurm import SlurmPolicy  # noqa: PLC0415

    return SlurmPlacer(policy.slurm or SlurmPolicy())


def _governed(policy: Policy) -> IndexedDecider:
    from tenfold.decide.place.governed import GovernedPlacer  # noqa: PLC0415
    from tenfold.model.policy.governance import GovernanceRules  # noqa: PLC0415

    return GovernedPlacer(policy.govern or GovernanceRules())


def _ranked(policy: Policy, capacity_factory: CapacityFactory) -> IndexedDecider:
    from tenfold.decide.place.ranked.learned import Learned  # noqa: PLC0415
    from tenfold.decide.place.ranked.orders import (  # noqa: PLC0415
        EarliestDeadline,
        FairShare,
        LeastAttained,
    )
    from tenfold.decide.place.ranked.ranked import REVIEW_MS, RankedPlacer  # noqa: PLC0415

    name = policy.name
    if name == "tenfold":
        keep = policy.keep_factor
        return RankedPlacer(name, Learned(), keep_factor=keep, capacity_of=capacity_factory)
    if name == "las":
        order, review_ms = LeastAttained(policy.las_limits_gpu_s), LAS_REVIEW_MS
    else:
        order, review_ms = EarliestDeadline() if name == "edf" else FairShare(), REVIEW_MS
    return RankedPlacer(name, order, review_ms=review_ms, capacity_of=capacity_factory)


def _is_plain(shape: Shape) -> bool:
    return not (shape.milli or shape.cpus_milli or shape.memory_mib)


def _arrival(job: Job) -> int:
    return 0


def _duration(job: Job) -> int:
    return job.duration_ms or 0
