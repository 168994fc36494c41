"""Governance: what teams get against what they deserve."""

from msgspec.structs import replace

from tenfold.model.ids import TeamId
from tenfold.model.job.job import WHOLE
from tenfold.model.policy.governance import ANY, GovernanceRules, TeamRules
from tenfold.study.grow.relief import Relief, with_relief
from tenfold.study.grow.runs.layer import Reading, SimulatedLayer
from tenfold.study.grow.runs.runs import Runs
from tenfold.study.grow.state import State


class Governance(SimulatedLayer):
    """Evenness among teams, where there are several."""

    name = "governance"
    resource = "teams"
    breaks = "teams get what they deserve with less evenness than `fairness_least`"
    cause_rank = 75
    fixed_by = "quotas by weight, with borrowing"
    always_listed = True

    def reading(self, state: State, runs: Runs) -> Reading | None:
        """Read the evenness of what teams get; one team has nobody to be uneven with."""
        if len(dict.fromkeys(job.team for job in state.inputs.jobs)) < 2:
            return None
        least = state.grow.limits.fairness_least
        return Reading(
            lambda one: least / max(1e-9, one.jain_entitlement),
            lambda one: f"teams get what they deserve with evenness {one.jain_entitlement:.2f}",
            lambda _, __: _quota_by_weight(state),
        )


def _quota_by_weight(state: State) -> list[Relief]:
    """Every team is promised its part by weight, and may borrow what others leave idle."""
    known = state.policy.govern if state.policy.name == "governed" else None
    if known is not None and known.teams == _deserved(state):
        return []

    def apply(now: State) -> State:
        govern = replace(now.policy.govern or GovernanceRules(), teams=_deserved(now))
        policy = replace(now.policy, name="governed", slurm=None, govern=govern)
        return replace(with_relief(now, "quota"), policy=policy)

    text = "promise every team its part by weight, and let idle parts be borrowed"
    return [Relief("quota", text, 0.0, 0.0, apply)]


def _deserved(state: State) -> tuple[TeamRules, ...]:
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
