"""Fairness: GPU time that teams get against their entitlement."""

from msgspec.structs import replace

from tenfold.model.growth.growth import GrowthLimits
from tenfold.model.ids import TeamId
from tenfold.model.job.job import WHOLE
from tenfold.model.policy.governance import ANY, GovernanceRules, TeamRules
from tenfold.study.grow.calibrate import Tolerances
from tenfold.study.grow.relief import Relief, with_relief
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
            lambda _, __: _quota_by_weight(state),
        )


def _quota_by_weight(state: State) -> list[Relief]:
    """Every team gets a quota by weight, and may borrow idle quota of others."""
    known = state.policy.govern if state.policy.name == "governed" else None
    if known is not None and known.teams == _quotas_by_weight(state):
        return []

    def apply(now: State) -> State:
        govern = replace(now.policy.govern or GovernanceRules(), teams=_quotas_by_weight(now))
        policy = replace(now.policy, name="governed", slurm=None, govern=govern)
        return replace(with_relief(now, "quota"), policy=policy)

    text = "give every team a quota in proportion to its weight, and let teams borrow idle quota"
    return [Relief("quota", text, 0.0, 0.0, apply)]


def _quotas_by_weight(state: State) -> tuple[TeamRules, ...]:
    weights = {str(team.id): team.weight for team in state.spec.teams}
    govern = state.policy.govern
    old = {str(team.id): team for team in govern.teams} if govern is not None else {}
    teams = sorted(dict.fromkeys(str(job.team) for job in state.inputs.jobs))
    whole = sum(weights.get(team, 1.0) for team in teams)
    milli = state.spec.gpus * WHOLE
    return tuple(
        replace(
            old.get(team, TeamRules(id=TeamId(team))),
            parent=None,
            weight=weights.get(team, 1.0),
            quota={ANY: int(milli * weights.get(team, 1.0) / whole)},
            borrow={},
            lend={},
            hours=(),
        )
        for team in teams
    )
