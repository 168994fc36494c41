"""Contention: GPU time that jobs lose to each other on shared storage and links."""

from tenfold.model.growth.growth import GrowthLimits
from tenfold.sim.measure.window_losses import CONTENTION
from tenfold.study.grow.calibrate import ERROR_MOST, Tolerances
from tenfold.study.grow.layer import Constraint
from tenfold.study.grow.layers.fabric.uplinks import reduced_oversubscription
from tenfold.study.grow.layers.jobs.policy import multiple_for, own_policy
from tenfold.study.grow.layers.storage.shelves import more_shelves
from tenfold.study.grow.relief import Relief
from tenfold.study.grow.runs.layer import Reading, SimulatedLayer, lost_symptom, lost_to
from tenfold.study.grow.runs.runs import Runs
from tenfold.study.grow.state import State


class Contention(SimulatedLayer):
    """Time lost to other jobs, if profiles say what jobs share."""

    name = "contention"
    resource = "shared layers"
    labels = (("shared layers", "Contention on shared storage and links"),)
    breaks = "contention costs more than `stall_share_most` of the allocated GPU time"
    cause_rank = 50
    grows_by = (
        "jobs, and with them what they read and write; the read rate of one job stays the same"
    )
    needs = "`--jobs` with `--profiles`"
    fixed_by = "another policy, more storage shelves, or non-blocking uplinks"
    shows_slow_jobs = True

    def tolerances(self, limits: GrowthLimits) -> Tolerances:
        """GPU time must be off by less than what jobs may lose."""
        return Tolerances(wait=None, use=min(ERROR_MOST, limits.stall_share_most), order=None)

    def reading(self, state: State, runs: Runs) -> Reading | None:
        """Read the time lost to other jobs."""
        if not state.inputs.profiles:
            return None
        return Reading(
            lost_to(CONTENTION, state.grow.limits.stall_share_most),
            lost_symptom(CONTENTION),
            lambda constraint, target: _reliefs(constraint, state, target),
        )


def _reliefs(constraint: Constraint, state: State, target: float) -> list[Relief]:
    """A policy that packs gangs, non-blocking uplinks, or shelves for the tiers read."""
    multiple = multiple_for(constraint, target)
    read = {one.traffic.tier: True for one in state.inputs.profiles.values()}
    return [
        *own_policy(state),
        *(more_shelves(state, tier, multiple) for tier in state.spec.tiers if tier.id in read),
        *(
            reduced_oversubscription(state, fabric, 1.0)
            for fabric in state.spec.fabrics
            if fabric.oversubscription > 1
        ),
    ]
