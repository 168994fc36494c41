"""Team limits as reliefs: quotas, borrowing and lending, which cost nothing.

A limit on what a team may borrow, or on what others lend, keeps GPUs idle while its jobs wait.
"""

from msgspec.structs import replace

from tenfold.model.job.job import WHOLE
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.policy.team_quotas import GOVERNED, with_free_borrowing, with_quotas
from tenfold.report.figures import count
from tenfold.study.grow.relief import Relief, with_relief
from tenfold.study.grow.state import State

QUOTA, BORROWING = "quota", "borrowing"
"""Codes of the reliefs."""
NAMED_MOST = 3
"""Teams named in a sentence; more are counted."""


def raised_team_limits(state: State, *, quotas: bool = True) -> list[Relief]:
    """Return the limits of a governed policy that may be raised; none under another policy."""
    govern = state.policy.govern if state.policy.name == GOVERNED else None
    if govern is None:
        return []
    return [*_free_borrowing(govern), *(quota_by_weight(state) if quotas else ())]


def _free_borrowing(govern: GovernanceRules) -> list[Relief]:
    """Teams may borrow all that is idle, and lend all that they do not use."""
    bound = [str(team.id) for team in govern.teams if team.borrow or team.lend]
    if not bound:
        return []

    def apply(now: State) -> State:
        return replace(with_relief(now, BORROWING), policy=with_free_borrowing(now.policy))

    said = f"lift the limits on borrowing and lending of {_named(bound)}"
    return [Relief(BORROWING, said, 0.0, 0.0, apply)]


def _named(teams: list[str]) -> str:
    if len(teams) > NAMED_MOST:
        return count(len(teams), "team")
    return ("team " if len(teams) == 1 else "teams ") + ", ".join(teams)


def quota_by_weight(state: State) -> list[Relief]:
    """Every team gets a quota by weight, and may borrow idle quota of others."""
    quotas = _quotas(state)
    if with_quotas(state.policy, quotas, _weights(state)) == state.policy:
        return []

    def apply(now: State) -> State:
        policy = with_quotas(now.policy, _quotas(now), _weights(now))
        return replace(with_relief(now, QUOTA), policy=policy)

    governed = state.policy.name == GOVERNED
    text = "give every team a quota in proportion to its weight, and let teams borrow idle quota"
    if not governed:
        text = f"switch the policy from `{state.policy.name}` to `{GOVERNED}`, and {text}"
    return [Relief(QUOTA, text, 0.0, 0.0, apply, scheduler=not governed)]


def _weights(state: State) -> dict[str, float]:
    return {str(team.id): team.weight for team in state.spec.teams}


def _quotas(state: State) -> dict[str, int]:
    """Return the share of all GPUs of each team in the history, by its weight."""
    weights = _weights(state)
    teams = sorted(dict.fromkeys(str(job.team) for job in state.inputs.jobs))
    whole = sum(weights.get(team, 1.0) for team in teams)
    milli = state.spec.gpus * WHOLE
    return {team: int(milli * weights.get(team, 1.0) / whole) for team in teams}
