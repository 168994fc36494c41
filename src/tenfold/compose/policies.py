"""From a policy's name and settings to the decider that places jobs by it."""

from collections.abc import Callable, Iterable
from functools import partial

from tenfold.decide.place.learned import Learned
from tenfold.decide.place.line import LinePlacer
from tenfold.decide.place.ranked import RankedPlacer
from tenfold.decide.place.rankings import (
    EarliestDeadline,
    FairShare,
    LeastAttained,
    ShortestRemaining,
)
from tenfold.decide.place.repack import RepackPlacer
from tenfold.decide.place.scored import make_capacity
from tenfold.decide.place.slurm import SlurmPlacer
from tenfold.engine.loop import Decider
from tenfold.fleet.capacity import Capacity
from tenfold.fleet.fleet import FleetView
from tenfold.model.job import Job, Shape
from tenfold.model.policy import Placement, Policy
from tenfold.model.slurm_policy import SlurmPolicy
from tenfold.model.units import MINUTE

LAS_REVIEW_MS = MINUTE


def placing_decider(
    policy: Policy, restart_cost_ms: int = 0, *, shapes: Iterable[Shape] | None = None
) -> Decider:
    """Return a fresh decider for a policy.

    Where all `shapes` that will ever come are known to ask for whole GPUs alone, places are
    found by bitsets, which choose the same and are quicker.
    """
    name = policy.name
    room = capacity_of(policy.placement, shapes)
    match name:
        case "fifo":
            return LinePlacer(name, _arrival, capacity_of=room)
        case "sjf":
            return LinePlacer(name, _duration, capacity_of=room)
        case "srtf" | "srsf":
            by_gpus = name == "srsf"
            order = ShortestRemaining(by_gpus=by_gpus, restart_cost_ms=restart_cost_ms)
            return RepackPlacer(name, order, capacity_of=room)
        case "las":
            order = LeastAttained(policy.las_limits_gpu_s)
            return RankedPlacer(name, order, review_ms=LAS_REVIEW_MS, capacity_of=room)
        case "edf":
            return RankedPlacer(name, EarliestDeadline(), capacity_of=room)
        case "fair":
            return RankedPlacer(name, FairShare(), capacity_of=room)
        case "slurm":
            return SlurmPlacer(policy.slurm or SlurmPolicy())
        case "tenfold":
            keep = policy.keep_factor
            return RankedPlacer(name, Learned(), keep_factor=keep, capacity_of=room)


def capacity_of(
    placement: Placement, shapes: Iterable[Shape] | None
) -> Callable[[FleetView], Capacity]:
    """Return how a decider is to build its index of free room."""
    if placement != "fgd" and shapes is not None and all(_is_plain(shape) for shape in shapes):
        return Capacity.of
    return partial(make_capacity, placement=placement)


def _is_plain(shape: Shape) -> bool:
    return not (shape.milli or shape.cpus_milli or shape.memory_mib)


def _arrival(job: Job) -> int:
    return 0


def _duration(job: Job) -> int:
    return job.duration_ms or 0
