"""What relieves jobs that wait or are slowed down: another policy, which is free, and nodes."""

from msgspec.structs import replace

from tenfold.physics.growth.breaking import breaking_factor
from tenfold.study.grow.layer import Constraint
from tenfold.study.grow.layers.compute.nodes import more_nodes
from tenfold.study.grow.relief import Relief, with_relief
from tenfold.study.grow.state import State

POLICY = "policy"
OWN = ("tenfold", "governed")
"""Policies that leave nothing to be had from a change to `tenfold`."""
MULTIPLE_MIN, MULTIPLE_MAX = 1.5, 8.0
"""Less does not stand out from the luck of runs, and more is tried in further steps."""


def shorter_waits(constraint: Constraint, state: State, target: float) -> list[Relief]:
    """Return another policy, and nodes.

    At so many times the nodes the work of the target loads them as that of the break does.
    """
    k = breaking_factor(constraint.utilisation, target)
    return [*own_policy(state), *([] if k is None else more_nodes(state, target / k))]


def own_policy(state: State) -> list[Relief]:
    """Return a change to Tenfold's own policy, where jobs run under another."""
    if state.policy.name in OWN:
        return []

    def apply(now: State) -> State:
        policy = replace(now.policy, name="tenfold", slurm=None)
        return replace(with_relief(now, POLICY), policy=policy)

    text = f"run jobs under `tenfold`, not `{state.policy.name}`"
    return [Relief(POLICY, text, 0.0, 0.0, apply)]


def multiple_for(constraint: Constraint, target: float) -> float:
    """Return how many times as much is tried, so that runs can tell."""
    return min(MULTIPLE_MAX, max(MULTIPLE_MIN, constraint.utilisation(target)))
