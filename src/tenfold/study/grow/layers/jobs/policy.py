"""Reliefs for jobs that wait or are slowed down: team limits, another policy, and nodes."""

from msgspec.structs import replace

from tenfold.physics.growth.breaking import breaking_factor
from tenfold.study.grow.layer import Constraint
from tenfold.study.grow.layers.compute.nodes import more_of_types, short_types
from tenfold.study.grow.layers.jobs.team_limits import raised_team_limits
from tenfold.study.grow.relief import Relief, with_relief
from tenfold.study.grow.state import State

POLICY = "policy"
OWN = ("tenfold", "governed")
"""Policies that gain nothing from a change to `tenfold`."""
MULTIPLE_MIN, MULTIPLE_MAX = 1.5, 8.0
"""Less is lost in the noise of runs, and more is tried in further steps."""


def shorter_waits(
    constraint: Constraint, state: State, target: float, types: tuple[str, ...] = ()
) -> list[Relief]:
    """Return another policy, higher team limits, and nodes of the types that are short.

    The nodes grow by as much as the target exceeds the break, so that the load stays the same; the
    analysis then finds the fewest that are enough.
    """
    k = breaking_factor(constraint.utilisation, target)
    more = [] if k is None else more_of_types(state, types or short_types(state), target / k)
    return [*own_policy(state), *raised_team_limits(state), *more]


def own_policy(state: State) -> list[Relief]:
    """Return a change to Tenfold's own policy, if jobs run under another."""
    if state.policy.name in OWN:
        return []

    def apply(now: State) -> State:
        policy = replace(now.policy, name="tenfold", slurm=None)
        return replace(with_relief(now, POLICY), policy=policy)

    text = f"switch the policy from `{state.policy.name}` to `tenfold`"
    return [Relief(POLICY, text, 0.0, 0.0, apply, scheduler=True)]


def multiple_for(constraint: Constraint, target: float) -> float:
    """Return the multiple of capacity to try: enough to show in runs."""
    return min(MULTIPLE_MAX, max(MULTIPLE_MIN, constraint.utilisation(target)))
