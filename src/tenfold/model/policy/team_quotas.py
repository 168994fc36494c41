"""Quotas and borrowing of teams, changed as a whole."""

from collections.abc import Mapping

from msgspec.structs import replace

from tenfold.model.ids import TeamId
from tenfold.model.policy.governance import ANY, GovernanceRules, TeamRules
from tenfold.model.policy.policy import Policy

GOVERNED = "governed"


def with_free_borrowing(policy: Policy) -> Policy:
    """Return a governed policy whose teams borrow and lend without a limit."""
    govern = policy.govern or GovernanceRules()
    teams = tuple(replace(team, borrow={}, lend={}) for team in govern.teams)
    return replace(policy, govern=replace(govern, teams=teams))


def with_quotas(policy: Policy, milli: Mapping[str, int], weights: Mapping[str, float]) -> Policy:
    """Return a governed policy in which teams have quotas in milli-GPUs, and borrow freely."""
    govern = policy.govern or GovernanceRules()
    old = {str(team.id): team for team in govern.teams}
    teams = tuple(
        replace(
            old.get(team, TeamRules(id=TeamId(team))),
            parent=None,
            weight=weights.get(team, 1.0),
            quota={ANY: quota},
            borrow={},
            lend={},
            hours=(),
        )
        for team, quota in milli.items()
    )
    return replace(policy, name=GOVERNED, slurm=None, govern=replace(govern, teams=teams))
