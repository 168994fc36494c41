"""What jobs share: uplinks of leaves and pods, storage tiers, and the power of a rack.

Resources are numbered so that flows can refer to them cheaply. An uplink of a non-blocking
fabric can never be the bottleneck; it is listed like the others.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tenfold.model.fleet.spec import FleetSpec, Pool
from tenfold.model.ids import NodeId
from tenfold.physics.fabric import FabricPlan
from tenfold.physics.layout import Layout, node_numbers

NOWHERE = -1
"""Stands for a leaf, pod or rack that a node does not have."""


class NodePlace(NamedTuple):
    """The location of one node, and the bandwidth and power of each of its GPUs."""

    leaf: int
    pod: int
    rack: int
    bytes_per_s_per_gpu: float
    power_w_per_gpu: float


class TierPlace(NamedTuple):
    """A tier as a resource: its capacity counts bytes read, and a written byte costs more."""

    resource: int
    units_per_written: float


class SharedLayers(NamedTuple):
    """Everything that jobs of one fleet share. `names` and `capacity` go by resource."""

    names: tuple[str, ...]
    capacity: tuple[float, ...]
    leaf_resource: tuple[int, ...]
    """The uplink of each leaf; `NOWHERE` where a leaf has none that could bind."""
    pod_resource: tuple[int, ...]
    tiers: Mapping[str, TierPlace]
    racks: tuple[str, ...]
    rack_w: tuple[float, ...]
    nodes: Mapping[NodeId, NodePlace]


Gang = Sequence[tuple[NodeId, float]]
"""The nodes of a job, with the GPUs (or the share of one) that each gives."""


def shared_layers(layout: Layout) -> SharedLayers:
    """Return what the jobs of a fleet share."""
    names: list[str] = []
    capacity: list[float] = []

    def resource(name: str, amount: float) -> int:
        names.append(name)
        capacity.append(amount)
        return len(names) - 1

    leaf_resource: list[int] = []
    pod_resource: list[int] = []
    first_pod: list[int] = []
    leaves = iter(layout.leaves)
    for plan in layout.fabrics:
        ups = _leaf_uplinks(plan)
        first_pod.append(len(pod_resource))
        for up in ups:
            name = f"uplink of leaf `{next(leaves).name}`"
            # Switches of a dragonfly group are joined each to each: only the group's links bind.
            bare = plan.kind == "dragonfly" or plan.leaves == 1
            leaf_resource.append(NOWHERE if bare else resource(name, up))
        for number, up in enumerate(_pod_uplinks(plan, ups)):
            name = f"uplink of pod {number + 1} of fabric `{plan.name}`"
            pod_resource.append(NOWHERE if plan.pods == 1 else resource(name, up))
    tiers = {
        str(tier.id): TierPlace(
            resource(f"tier `{tier.id}`", float(tier.read_bandwidth)),
            tier.read_bandwidth / tier.write_bandwidth,
        )
        for tier in layout.spec.tiers
    }
    pods = [first_pod[leaf.fabric] + leaf.pod for leaf in layout.leaves]
    return SharedLayers(
        names=tuple(names),
        capacity=tuple(capacity),
        leaf_resource=tuple(leaf_resource),
        pod_resource=tuple(pod_resource),
        tiers=tiers,
        racks=tuple(rack.name for rack in layout.racks),
        rack_w=tuple(rack.power_kw_limit * 1_000 for rack in layout.racks),
        nodes=_nodes(layout, pods),
    )


def _leaf_uplinks(plan: FabricPlan) -> list[float]:
    """Return what leaves each leaf: built for a full leaf, and for more where one is crowded."""
    return np.maximum(plan.leaf_up, plan.leaf_hosts / plan.oversubscription).tolist()


def _pod_uplinks(plan: FabricPlan, leaf_up: Sequence[float]) -> list[float]:
    """Return what leaves each pod; in a dragonfly a group's leaves already count as it does."""
    ratio = 1.0 if plan.kind == "dragonfly" else plan.core_oversubscription
    starts = range(0, plan.leaves, plan.leaves_per_pod)
    sums = [sum(leaf_up[start : start + plan.leaves_per_pod]) for start in starts]
    return [max(plan.pod_up, entering / ratio) for entering in sums]


def _nodes(layout: Layout, pods: Sequence[int]) -> dict[NodeId, NodePlace]:
    rates = [_per_gpu(pool, pool.nics_per_node * pool.nic_bandwidth) for pool in layout.spec.pools]
    watts = [_per_gpu(pool, pool.power_w_per_node) for pool in layout.spec.pools]
    columns = zip(
        _names(layout.spec, layout.pool_start),
        layout.pool_of.tolist(),
        layout.leaf_of.tolist(),
        layout.rack_of.tolist(),
        strict=True,
    )
    return {
        name: NodePlace(leaf, pods[leaf] if leaf >= 0 else NOWHERE, rack, rates[pool], watts[pool])
        for name, pool, leaf, rack in columns
    }


def _names(spec: FleetSpec, pool_start: Sequence[int]) -> list[NodeId]:
    """Return the names of nodes by number."""
    # Numbers are given pool by pool in order, so the mapping lists them in order too.
    return [NodeId(name) for name in node_numbers(spec, pool_start)]


def _per_gpu(pool: Pool, amount: float) -> float:
    return amount / max(1, pool.gpus_per_node)


def crossings(layers: SharedLayers, gang: Gang) -> list[tuple[int, float]]:
    """Return the uplinks that a gang crosses, each with the GPUs whose traffic crosses it.

    Partners are spread evenly over the gang, so `g` of its `n` GPUs under one leaf send
    the part `1 - g / n` of their traffic out of it. A gang under one leaf crosses nothing.
    """
    total = 0.0
    by_leaf: dict[int, float] = {}
    by_pod: dict[int, float] = {}
    for node, gpus in gang:
        place = layers.nodes[node]
        total += gpus
        by_leaf[place.leaf] = by_leaf.get(place.leaf, 0.0) + gpus
        by_pod[place.pod] = by_pod.get(place.pod, 0.0) + gpus
    found: list[tuple[int, float]] = []
    for resources, parts in ((layers.leaf_resource, by_leaf), (layers.pod_resource, by_pod)):
        for where, gpus in parts.items() if len(parts) > 1 else ():
            if where != NOWHERE and resources[where] != NOWHERE and gpus > 0:
                found.append((resources[where], gpus * (1.0 - gpus / total)))
    return found


def sending_bytes_per_s(layers: SharedLayers, gang: Gang) -> float:
    """Return what each GPU of a gang can send: the rate of its slowest node."""
    return min(layers.nodes[node].bytes_per_s_per_gpu for node, _ in gang)
