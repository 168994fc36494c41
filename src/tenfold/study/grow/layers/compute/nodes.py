"""More nodes: the relief of layers short of GPUs, at the price of their pool.

Added nodes load power, ports and floor like the existing ones.
"""

from msgspec.structs import replace

from tenfold.model.fleet.spec import FleetSpec, Pool
from tenfold.model.units import HOURS_PER_MONTH, usd
from tenfold.report.figures import count
from tenfold.study.grow.relief import Relief, lead_weeks, round_up_to, with_relief
from tenfold.study.grow.runs.fleet import grown_fleet
from tenfold.study.grow.state import State

NODES = "nodes"
FACTOR_MOST = 64.0
"""Growing the fleet by more than this is a different fleet, not a relief."""


def more_nodes(state: State, factor: float, pool: str = "") -> list[Relief]:
    """Return a relief to at least a multiple of the nodes, in one pool or in all pools."""
    if factor > FACTOR_MOST:
        return []
    grown = _grown(state.spec, factor, pool)
    more = grown.nodes - state.spec.nodes
    if more <= 0:
        return []

    def apply(now: State) -> State:
        return with_relief(now, NODES, _grown(now.spec, factor, pool))

    where = f"to pool {pool}" if pool else "across the pools"
    text = f"add {count(more, 'node')} {where}"
    return [Relief(NODES, text, _price(state.spec, grown), lead_weeks(state, NODES), apply)]


def more_of_types(state: State, types: tuple[str, ...], multiple: float) -> list[Relief]:
    """Return more nodes: across the pools, or in the largest pool of the types that are short."""
    if not types:
        return more_nodes(state, multiple)
    pools = [pool for pool in state.spec.pools if pool.accelerator in types and pool.gpus]
    largest = max(pools, key=lambda pool: pool.gpus)
    more = gpus_of_types(state.spec, types) * (multiple - 1) / largest.gpus
    return more_nodes(state, 1 + more, str(largest.id))


def gpus_of_types(spec: FleetSpec, types: tuple[str, ...]) -> int:
    """Return the GPUs of some types; no types: of all."""
    return sum(pool.gpus for pool in spec.pools if not types or pool.accelerator in types)


def _grown(spec: FleetSpec, factor: float, pool: str) -> FleetSpec:
    """Return a fleet with at least a multiple of the nodes."""
    if not pool:
        nodes = round_up_to(spec.nodes * factor, 1)
        return grown_fleet(spec, nodes / spec.nodes)
    # Node names of other pools stay reserved, and pools without nodes do not grow.
    kept = {one.id: one.nodes for one in spec.pools if one.id != pool}
    alone = tuple(replace(one, nodes=0) if one.id in kept else one for one in spec.pools)
    own = spec.nodes - sum(kept.values())
    grown = grown_fleet(replace(spec, pools=alone), round_up_to(own * factor, 1) / own)
    pools = tuple(replace(one, nodes=kept.get(one.id, one.nodes)) for one in grown.pools)
    return replace(grown, pools=pools)


def _price(before: FleetSpec, after: FleetSpec) -> float | None:
    """Return what the added nodes cost a month; None if one of their pools has no price."""
    total = 0.0
    for old, new in zip(before.pools, after.pools, strict=True):
        if new.nodes == old.nodes:
            continue
        if old.price is None:
            return None
        total += (new.nodes - old.nodes) * _hourly(old, old.price.usd_micros_per_hour)
    return total * HOURS_PER_MONTH


def node_usd_per_month(spec: FleetSpec) -> float | None:
    """Return what a node costs a month, on average; None if a pool has no price."""
    if not spec.nodes or any(pool.price is None for pool in spec.pools):
        return None
    hourly = sum(
        pool.nodes * _hourly(pool, pool.price.usd_micros_per_hour)
        for pool in spec.pools
        if pool.price is not None
    )
    return hourly / spec.nodes * HOURS_PER_MONTH


def _hourly(pool: Pool, micros: int) -> float:
    """Prices are per GPU, and per node in a pool without GPUs."""
    return usd(micros) * (pool.gpus_per_node or 1)
