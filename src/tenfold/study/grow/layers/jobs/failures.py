"""Failures: GPU time that jobs lose when their nodes fail."""

from msgspec.structs import replace

from tenfold.model.growth.growth import GrowthLimits
from tenfold.model.units import MINUTE
from tenfold.sim.measure.window_losses import FAILURES
from tenfold.sim.world import SimSettings
from tenfold.study.grow.calibrate import ERROR_MOST, Tolerances
from tenfold.study.grow.layer import Constraint
from tenfold.study.grow.layers.jobs.policy import multiple_for
from tenfold.study.grow.relief import Relief, with_relief
from tenfold.study.grow.runs.layer import Reading, SimulatedLayer, lost_symptom, lost_to
from tenfold.study.grow.runs.runs import Runs
from tenfold.study.grow.state import State

SAVES_LEAST_MIN = 5.0


class Failures(SimulatedLayer):
    """Time lost since the last checkpoint, if nodes fail in runs."""

    name = "failures"
    title = "Time lost to failures"
    labels = (("gangs", "Time lost to failures"),)
    resource = "gangs"
    breaks = "node failures cost more than `lost_share_most` of the allocated GPU time"
    cause_rank = 40
    grows_by = "jobs"
    capacity_grows_with = ("nodes",)
    needs = "`--failures` and `--jobs` or `--mix`"
    fixed_by = "more frequent checkpoints"

    def tolerances(self, limits: GrowthLimits) -> Tolerances:
        """GPU time must be off by less than what jobs may lose."""
        return Tolerances(wait=None, use=min(ERROR_MOST, limits.lost_share_most), order=None)

    def reading(self, state: State, runs: Runs) -> Reading | None:
        """Read the time lost to failures."""
        if not runs.fails:
            return None
        return Reading(
            lost_to(FAILURES, state.grow.limits.lost_share_most),
            lost_symptom(FAILURES),
            lambda constraint, target: _saves(constraint, state, target),
        )


def _saves(constraint: Constraint, state: State, target: float) -> list[Relief]:
    """A failure loses the work since the last checkpoint, half an interval on average."""
    usual = SimSettings().checkpoint_every_ms / MINUTE
    old = state.grow.operations.checkpoint_every_min or usual
    new = max(SAVES_LEAST_MIN, float(int(old / multiple_for(constraint, target))))
    if new >= old:
        return []

    def apply(now: State) -> State:
        operations = replace(now.grow.operations, checkpoint_every_min=new)
        return replace(with_relief(now, "saves"), grow=replace(now.grow, operations=operations))

    text = f"checkpoint every {new:g} min instead of {old:g} (checkpoint overhead not included)"
    return [Relief("saves", text, 0.0, 0.0, apply)]
