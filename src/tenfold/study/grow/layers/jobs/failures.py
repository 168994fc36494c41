"""Failures: GPU time that gangs lose with the nodes that fail under them."""

from msgspec.structs import replace

from tenfold.model.units import MINUTE
from tenfold.sim.measure.window_losses import FAILURES
from tenfold.sim.world import SimSettings
from tenfold.study.grow.layer import Constraint
from tenfold.study.grow.layers.jobs.policy import multiple_for
from tenfold.study.grow.relief import Relief, with_relief
from tenfold.study.grow.runs.layer import Reading, SimulatedLayer, lost_symptom, lost_to
from tenfold.study.grow.runs.runs import Runs
from tenfold.study.grow.state import State

SAVES_LEAST_MIN = 5.0


class Failures(SimulatedLayer):
    """Time lost since the last save, where nodes fail in runs."""

    name = "failures"
    resource = "gangs"
    breaks = "failures of nodes take more than `lost_share_most` of the GPU time held"
    cause_rank = 40
    needs = "`--failures`: how often nodes fail, a preset or a trace; and a history of jobs"
    fixed_by = "more frequent saves"

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
    """What is lost with a node is what was done since the last save, half of it on average."""
    usual = SimSettings().checkpoint_every_ms / MINUTE
    old = state.grow.operations.checkpoint_every_min or usual
    new = max(SAVES_LEAST_MIN, float(int(old / multiple_for(constraint, target))))
    if new >= old:
        return []

    def apply(now: State) -> State:
        operations = replace(now.grow.operations, checkpoint_every_min=new)
        return replace(with_relief(now, "saves"), grow=replace(now.grow, operations=operations))

    text = f"save every {new:g} min, {old:g} today; what saves take is not counted in this"
    return [Relief("saves", text, 0.0, 0.0, apply)]
