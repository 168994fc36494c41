"""Reliefs for jobs that wait or are slowed down: another policy, which is free, and nodes."""

from msgspec.structs import replace

from tenfold.physics.growth.breaking import breaking_factor
from tenfold.study.grow.layer import Constraint
from tenfold.study.grow.layers.compute.nodes import more_nodes
from tenfold.study.grow.relief import Relief, with_relief
from tenfold.study.grow.state import State

POLICY = "policy"
OWN = ("tenfold", "governed")
"""Policies that gain nothing from a change to `tenfold`."""
MULTIPLE_MIN, MULTIPLE_MAX = 1.5, 8.0
"""Less is lost in the noise of runs, and more is tried in further steps."""


def shorter_waits(constraint: Constraint, state: State, target: float) -> list[Relief]:
    """Return another policy, and nodes.

    The nodes grow by as much as the target exceeds the break, so that the load stays the same.
    """
    k = breaking_factor(constraint.utilisation, target)
    return [*own_policy(state), *([] if k is None else more_nodes(state, target / k))]


def own_policy(state: State) -> list[Relief]:
    """Return a change to Tenfold's own policy, if jobs run under another."""
    if state.policy.name in OWN:
        return []

    def apply(now: State) -> State:
        policy = replace(now.policy, name="tenfold", slurm=None)
        return replace(with_relief(now, POLICY), policy=policy)

    text = f"switch the policy from `{state.policy.name}` to `tenfold`"
    return [Relief(POLICY, text, 0.0, 0.0, apply)]


def multiple_for(constraint: Constraint, target: float) -> float:
    """Return the multiple of capacity to try: enough to show in runs."""
    return min(MULTIPLE_MAX, max(MULTIPLE_MIN, constraint.utilisation(target)))
