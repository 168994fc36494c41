"""Fairness: GPU time that teams get against their entitlement."""

from tenfold.model.growth.growth import GrowthLimits
from tenfold.study.grow.calibrate import Tolerances
from tenfold.study.grow.layers.jobs.team_limits import quota_by_weight, raised_team_limits
from tenfold.study.grow.runs.layer import Reading, SimulatedLayer
from tenfold.study.grow.runs.runs import Runs
from tenfold.study.grow.state import State


class Governance(SimulatedLayer):
    """Fairness between teams, if there are several."""

    name = "governance"
    title = "Fairness between teams"
    labels = (("teams", "Fairness between teams"),)
    resource = "teams"
    breaks = "fairness between teams falls below `fairness_least`"
    cause_rank = 75
    grows_by = "jobs"
    capacity_grows_with = ("nodes",)
    fixed_by = "quotas by weight, with borrowing"
    always_listed = True

    def tolerances(self, limits: GrowthLimits) -> Tolerances:
        """Who gets GPU time does not depend on the order within a team."""
        return Tolerances(order=None)

    def reading(self, state: State, runs: Runs) -> Reading | None:
        """Read how evenly teams get their entitlement; None with a single team."""
        if len(dict.fromkeys(job.team for job in state.inputs.jobs)) < 2:
            return None
        least = state.grow.limits.fairness_least
        return Reading(
            lambda one: least / max(1e-9, one.jain_entitlement),
            lambda one: f"fairness between teams: {one.jain_entitlement:.2f} (limit {least:g})",
            lambda _, __: [*raised_team_limits(state, quotas=False), *quota_by_weight(state)],
        )
