"""More nodes: the relief of layers short of GPUs, at the price of their pool.

Nodes are added to one pool, of an accelerator type that is short, in units that help: whole
scale-up domains, and whole gangs if jobs of one size fill the pool. Added nodes load power, ports
and floor like the existing ones.
"""

from math import ceil, gcd, inf, lcm

from msgspec.structs import replace

from tenfold.model.fleet.spec import FleetSpec, Pool
from tenfold.report.figures import count
from tenfold.study.estimate.money import fleet_bill
from tenfold.study.grow.history import gpu_time, types_asked
from tenfold.study.grow.relief import NEARLY, Relief, lead_weeks, with_relief
from tenfold.study.grow.runs.fleet import grown_fleet
from tenfold.study.grow.state import State

NODES = "nodes"
FACTOR_MOST = 64.0
"""Growing a pool by more than this is a different fleet, not a relief."""
POOLS_MOST = 3
"""Pools in which a relief is tried, the cheapest first."""


def more_nodes(state: State, factor: float, pool: str) -> list[Relief]:
    """Return a relief to at least a multiple of the nodes of one pool."""
    own = next(one for one in state.spec.pools if one.id == pool)
    return _relief(state, own, own.nodes * (factor - 1))


def more_of_types(state: State, types: tuple[str, ...], multiple: float) -> list[Relief]:
    """Return more nodes for a multiple of the GPUs of some types, in one of their pools each.

    No types: GPUs of any type help.
    """
    gpus = gpus_of_types(state.spec, types) * (multiple - 1)
    pools = [
        pool for pool in state.spec.pools if pool.gpus and (not types or pool.accelerator in types)
    ]
    cheapest = sorted(pools, key=lambda pool: (_gpu_usd(state.spec, pool), -pool.gpus))[:POOLS_MOST]
    return [
        relief for pool in cheapest for relief in _relief(state, pool, gpus / pool.gpus_per_node)
    ]


def short_types(state: State) -> tuple[str, ...]:
    """Return the accelerator types with the highest load, if jobs ask for types; else none."""
    wanted_types = types_asked(state.inputs.jobs, state.spec)
    work = gpu_time(state.inputs.jobs)

    def load(types: tuple[str, ...]) -> float:
        wanted = sum(gpu_s for kind, gpu_s in work.items() if kind.confined_to(types))
        return wanted / max(1, gpus_of_types(state.spec, types))

    return max(wanted_types, key=load, default=())


def gpus_of_types(spec: FleetSpec, types: tuple[str, ...]) -> int:
    """Return the GPUs of some types; no types: of all."""
    return sum(pool.gpus for pool in spec.pools if not types or pool.accelerator in types)


def _relief(state: State, pool: Pool, nodes: float) -> list[Relief]:
    """Return at least so many nodes more in a pool, in whole units."""
    if nodes <= 0 or nodes > pool.nodes * (FACTOR_MOST - 1):
        return []
    unit = _unit(state, pool)
    # The first unit may complete one that is there in part.
    there = pool.nodes // unit
    return [_sized(state, pool, unit, ceil((pool.nodes + nodes) / unit * NEARLY) - there)]


def _sized(state: State, pool: Pool, unit: int, units: int) -> Relief:
    more = max(1, (pool.nodes // unit + units) * unit - pool.nodes)

    def apply(now: State) -> State:
        return with_relief(now, NODES, with_nodes(now.spec, str(pool.id), more))

    price = _node_usd_per_month(state.spec, pool)
    return Relief(
        NODES,
        f"add {count(more, 'node')} to pool {pool.id}{_in_units(state, pool, unit, more)}",
        None if price is None else price * more,
        lead_weeks(state, NODES),
        apply,
        units=units,
        resize=lambda units: _sized(state, pool, unit, units),
    )


def _in_units(state: State, pool: Pool, unit: int, more: int) -> str:
    if unit == 1 or more % unit:
        return ""
    domain = _domain_nodes(pool)
    one = "scale-up domain" if unit == domain else "gang"
    each = f" of {unit:,} nodes" if more == unit else f" of {unit:,} nodes each"
    return f" ({count(more // unit, one)}{each})"


def _unit(state: State, pool: Pool) -> int:
    """Return the fewest nodes that help: a scale-up domain, and a gang if all jobs are gangs."""
    unit = lcm(_domain_nodes(pool), _gang_nodes(state, pool))
    return unit if unit <= pool.nodes else _domain_nodes(pool)


def _domain_nodes(pool: Pool) -> int:
    """Return the nodes of a scale-up domain, such as the trays of one rack."""
    if not pool.gpus_per_node:
        return 1
    return max(1, pool.scaleup_gpus // pool.gpus_per_node)


def _gang_nodes(state: State, pool: Pool) -> int:
    """Return the nodes that every job on a pool takes a multiple of."""
    each = pool.gpus_per_node
    sizes = {
        kind.gpus
        for kind in gpu_time(state.inputs.jobs)
        if not kind.accelerators or pool.accelerator in kind.accelerators
    }
    if not each or not sizes or any(size % each for size in sizes):
        return 1
    return gcd(*(int(size) // each for size in sizes))


def with_nodes(spec: FleetSpec, pool: str, more: int) -> FleetSpec:
    """Return a fleet with more nodes in one pool, in its own pattern."""
    # Node names of other pools stay reserved, and pools without nodes do not grow.
    kept = {one.id: one.nodes for one in spec.pools if one.id != pool}
    alone = tuple(replace(one, nodes=0) if one.id in kept else one for one in spec.pools)
    own = spec.nodes - sum(kept.values())
    grown = grown_fleet(replace(spec, pools=alone), (own + more) / own)
    pools = tuple(replace(one, nodes=kept.get(one.id, one.nodes)) for one in grown.pools)
    return replace(grown, pools=pools)


def mixed_node_usd(spec: FleetSpec) -> tuple[float | None, int]:
    """Return what a node costs a month on average, and how many pools it leaves out.

    Pools without a price add nothing; None if no pool has one.
    """
    prices = [(pool.nodes, _node_usd_per_month(spec, pool)) for pool in spec.pools if pool.nodes]
    known = [nodes * price for nodes, price in prices if price is not None]
    return (sum(known) / spec.nodes if known else None), len(prices) - len(known)


def _node_usd_per_month(spec: FleetSpec, pool: Pool) -> float | None:
    return None if pool.price is None else node_usd(spec, pool)


def node_usd(spec: FleetSpec, pool: Pool) -> float:
    """Return what a node of a pool costs a month, with its energy if it is owned."""
    one = replace(spec, pools=(replace(pool, nodes=1),), tiers=())
    return sum(line.usd for line in fleet_bill(one))


def _gpu_usd(spec: FleetSpec, pool: Pool) -> float:
    price = _node_usd_per_month(spec, pool)
    return inf if price is None else price / max(1, pool.gpus_per_node)
