"""The location of every node: its pool, rack and leaf, as arrays.

Nodes are numbered pool by pool in the order of their host lists; racks and leaves listed
in the file are kept, and the others are filled in order, rack by rack.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tenfold.model.fleet import hostlist
from tenfold.model.fleet.spec import GENERATED_RACK, Domain, Fabric, FleetSpec
from tenfold.physics.fabric import FabricPlan, Floats, Ints, leaf_size, plan_fabric


class RackPlace(NamedTuple):
    """A rack that holds nodes."""

    name: str
    site: int
    hall: str
    power_kw_limit: float


class LeafPlace(NamedTuple):
    """A leaf switch (in a rail-optimised fabric, a group of rail switches)."""

    name: str
    fabric: int
    pod: int


class Layout(NamedTuple):
    """The fleet node by node. Arrays are indexed by node number."""

    spec: FleetSpec
    pool_of: Ints
    rack_of: Ints
    leaf_of: Ints
    racks: list[RackPlace]
    leaves: list[LeafPlace]
    fabrics: list[FabricPlan]
    fabric_of: Ints
    pool_start: list[int]

    def per_node(self, values: Sequence[float]) -> Floats:
        """Spread one value a pool over that pool's nodes."""
        return np.asarray(values, dtype=np.float64)[self.pool_of]

    def members(self, domain: Domain) -> Ints:
        """Return the nodes of a declared domain, following the domains it holds."""
        return _members(domain, self)


def lay_out(spec: FleetSpec) -> Layout:
    """Return the location of every node of a fleet."""
    counts = [pool.nodes for pool in spec.pools]
    pool_start = [0, *np.cumsum(counts).tolist()]
    pool_of = np.repeat(np.arange(len(counts)), counts)
    racks, rack_of = _racks(spec, pool_start, pool_of)
    fabric_names = {str(fabric.id): place for place, fabric in enumerate(spec.fabrics)}
    fabric_of_pool = [fabric_names.get(pool.fabric or "", -1) for pool in spec.pools]
    fabric_of = np.asarray(fabric_of_pool)[pool_of]
    unfinished = Layout(
        spec=spec,
        pool_of=pool_of,
        rack_of=rack_of,
        leaf_of=np.full(len(pool_of), -1),
        racks=racks,
        leaves=[],
        fabrics=[],
        fabric_of=fabric_of,
        pool_start=pool_start,
    )
    stated = [
        (domain, unfinished.members(domain)) for domain in spec.domains if domain.kind == "leaf"
    ]
    for place, fabric in enumerate(spec.fabrics):
        _attach(fabric, place, unfinished, stated)
    return unfinished


def _racks(spec: FleetSpec, pool_start: list[int], pool_of: Ints) -> tuple[list[RackPlace], Ints]:
    sites = {site.id: place for place, site in enumerate(spec.sites)}
    rack_of = np.full(len(pool_of), -1)
    racks: list[RackPlace] = []
    if spec.racks:
        numbers = node_numbers(spec, pool_start)
        for rack in spec.racks:
            site = spec.sites[sites[rack.site]]
            limit = rack.power_kw_limit or site.rack_kw_limit
            names = hostlist.expand(rack.nodes)
            rack_of[[numbers[name] for name in names]] = len(racks)
            racks.append(RackPlace(rack.id, sites[rack.site], rack.hall, limit))
    for place, pool in enumerate(spec.pools):
        start, end = pool_start[place], pool_start[place + 1]
        loose = start + np.flatnonzero(rack_of[start:end] < 0)
        rack_of[loose] = len(racks) + np.arange(len(loose)) // pool.nodes_per_rack
        site = sites[pool.site]
        limit = spec.sites[site].rack_kw_limit
        count = -(-len(loose) // pool.nodes_per_rack)
        racks.extend(
            RackPlace(f"{pool.id}{GENERATED_RACK}{number + 1}", site, "", limit)
            for number in range(count)
        )
    return racks, rack_of


def node_numbers(spec: FleetSpec, pool_start: Sequence[int]) -> Mapping[str, int]:
    """Return the number of every node by name."""
    numbers: dict[str, int] = {}
    for place, pool in enumerate(spec.pools):
        names = hostlist.expand(pool.node_names)
        numbers.update(zip(names, range(pool_start[place], pool_start[place + 1]), strict=True))
    return numbers


def _attach(
    fabric: Fabric, place: int, layout: Layout, stated: Sequence[tuple[Domain, Ints]]
) -> None:
    """Connect the nodes of one fabric to leaves: listed leaves first, then in order."""
    spec = layout.spec
    nodes = np.flatnonzero(layout.fabric_of == place)
    nodes = nodes[np.argsort(layout.rack_of[nodes], kind="stable")]
    bandwidth = layout.per_node(
        [float(pool.nics_per_node * pool.nic_bandwidth) for pool in spec.pools]
    )
    ports = layout.per_node([float(pool.nics_per_node) for pool in spec.pools])[nodes]
    nics = int(np.ceil(ports.mean())) if len(nodes) else 1
    size = leaf_size(fabric, len(nodes), nics)
    order: list[Ints] = []
    names: list[str] = []
    taken = np.zeros(len(layout.pool_of), dtype=bool)
    for domain, members in stated:
        own = members[(layout.fabric_of[members] == place) & ~taken[members]]
        if len(own):
            taken[own] = True
            order.append(own)
            names.append(domain.id)
    loose = nodes[~taken[nodes]]
    chunks = [loose[start : start + size] for start in range(0, len(loose), size)]
    names.extend(f"{fabric.id}-leaf-{number + 1}" for number in range(len(chunks)))
    order.extend(chunks)
    lengths = np.asarray([len(chunk) for chunk in order], dtype=np.int64)
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1])).astype(np.int64) if order else lengths
    sorted_nodes = np.concatenate(order) if order else nodes
    plan = plan_fabric(fabric, bandwidth[sorted_nodes], nics, starts)
    first = len(layout.leaves)
    layout.leaf_of[sorted_nodes] = np.repeat(np.arange(first, first + len(order)), lengths)
    layout.leaves.extend(
        LeafPlace(name, place, number // plan.leaves_per_pod) for number, name in enumerate(names)
    )
    layout.fabrics.append(plan)


def _members(domain: Domain, layout: Layout) -> Ints:
    spec = layout.spec
    mask = np.zeros(len(layout.pool_of), dtype=bool)
    if domain.nodes:
        numbers = node_numbers(spec, layout.pool_start)
        mask[[numbers[name] for name in hostlist.expand(domain.nodes)]] = True
    pools = {str(pool.id): place for place, pool in enumerate(spec.pools)}
    racks = {rack.name: place for place, rack in enumerate(layout.racks)}
    domains = {str(other.id): other for other in spec.domains}
    for member in domain.members:
        if member in racks:
            mask |= layout.rack_of == racks[member]
        elif member in pools:
            mask |= layout.pool_of == pools[member]
        elif member in domains:
            mask[layout.members(domains[member])] = True
    return np.flatnonzero(mask)
