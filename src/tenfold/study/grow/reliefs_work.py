"""What relieves layers that only runs can tell: another policy, which is free, or more nodes.

More nodes strain power, ports and floor; the ladder judges those again, as for any relief.
"""

from msgspec.structs import replace

from tenfold.compose.grown_fleet import grown_fleet
from tenfold.model.fleet_spec import FleetSpec, Pool
from tenfold.model.units import HOURS_PER_MONTH, usd
from tenfold.physics.growth.law import Law, breaking_factor
from tenfold.report.figures import count
from tenfold.study.grow.relief import Relief, lead_weeks, taken
from tenfold.study.grow.state import State

NODES = "nodes"
POLICY = "policy"
OWN = ("tenfold", "governed")
"""Policies that leave nothing to be had from a change to `tenfold`."""


def work_reliefs(law: Law, state: State, target: float) -> list[Relief]:
    """Return a policy that packs and orders better, and nodes for the work of the target."""
    return [*_policy(state), *_nodes(law, state, target)]


def _policy(state: State) -> list[Relief]:
    if state.policy.name in OWN:
        return []

    def apply(now: State) -> State:
        policy = replace(now.policy, name="tenfold", slurm=None)
        return replace(taken(now, POLICY), policy=policy)

    text = f"run jobs under `tenfold`, not `{state.policy.name}`"
    return [Relief(POLICY, text, 0.0, 0.0, apply)]


def _nodes(law: Law, state: State, target: float) -> list[Relief]:
    """At so many times the nodes the work of the target loads them as that of the break does."""
    k = breaking_factor(law.strain, target)
    if k is None:
        return []
    grown = grown_fleet(state.spec, target / k)
    more = grown.nodes - state.spec.nodes
    if more <= 0:
        return []

    def apply(now: State) -> State:
        return taken(now, NODES, grown_fleet(now.spec, target / k))

    text = f"{count(more, 'node')} more, by the pattern of the pools"
    return [
        Relief(NODES, text, _price(state.spec, grown), lead_weeks(state, NODES), apply),
    ]


def _price(before: FleetSpec, after: FleetSpec) -> float | None:
    """Return what the nodes more cost a month; None where a pool of them has no price."""
    total = 0.0
    for old, new in zip(before.pools, after.pools, strict=True):
        if new.nodes == old.nodes:
            continue
        if old.price is None:
            return None
        total += (new.nodes - old.nodes) * _hourly(old, old.price.usd_micros_per_hour)
    return total * HOURS_PER_MONTH


def _hourly(pool: Pool, micros: int) -> float:
    """A price is of a GPU, and on a pool without GPUs of a node."""
    return usd(micros) * (pool.gpus_per_node or 1)
