"""Fragmentation: GPUs that idle because no waiting job fits."""

from tenfold.model.growth.growth import GrowthLimits
from tenfold.study.grow.calibrate import ERROR_MOST, Tolerances
from tenfold.study.grow.layers.jobs.policy import shorter_waits
from tenfold.study.grow.runs.layer import Reading, SimulatedLayer
from tenfold.study.grow.runs.runs import Runs
from tenfold.study.grow.state import State


class Fragmentation(SimulatedLayer):
    """The share of all GPUs that is stranded."""

    name = "fragmentation"
    resource = "nodes"
    labels = (("nodes", "Fragmentation"),)
    breaks = "more than `stranded_share_most` of the GPUs are idle because no waiting job fits"
    cause_rank = 70
    grows_by = "jobs"
    capacity_grows_with = ("nodes",)
    fixed_by = "higher team limits, more nodes, or another policy"
    reports_missing_work = True

    def tolerances(self, limits: GrowthLimits) -> Tolerances:
        """GPU time must be off by less than what may be stranded."""
        return Tolerances(wait=None, use=min(ERROR_MOST, limits.stranded_share_most))

    def reading(self, state: State, runs: Runs) -> Reading:
        """Read the share of GPUs that no waiting job can use."""
        most = state.grow.limits.stranded_share_most
        return Reading(
            lambda one: one.stranded / most,
            lambda one: f"{one.stranded:.0%} of the GPUs idle because no waiting job fits",
            lambda constraint, target: shorter_waits(constraint, state, target),
        )
