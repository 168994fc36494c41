"""From a policy's name and settings to the decider that places jobs by it."""

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
from tenfold.decide.place.slurm import SlurmPlacer
from tenfold.engine.loop import Decider
from tenfold.model.job import Job
from tenfold.model.policy import Policy
from tenfold.model.slurm_policy import SlurmPolicy


def placing_decider(policy: Policy, restart_cost_ms: int = 0) -> Decider:
    """Return a fresh decider for a policy."""
    name = policy.name
    match name:
        case "fifo":
            return LinePlacer(name, _arrival)
        case "sjf":
            return LinePlacer(name, _duration)
        case "srtf" | "srsf":
            by_gpus = name == "srsf"
            order = ShortestRemaining(by_gpus=by_gpus, restart_cost_ms=restart_cost_ms)
            return RepackPlacer(name, order)
        case "las":
            return RankedPlacer(name, LeastAttained(policy.las_limits_gpu_s))
        case "edf":
            return RankedPlacer(name, EarliestDeadline())
        case "fair":
            return RankedPlacer(name, FairShare())
        case "slurm":
            return SlurmPlacer(policy.slurm or SlurmPolicy())
        case "tenfold":
            return RankedPlacer(name, Learned(), keep_factor=policy.keep_factor)


def _arrival(job: Job) -> int:
    return 0


def _duration(job: Job) -> int:
    return job.duration_ms or 0
