"""The layers of a fabric, and closed formulas for its bisection bandwidth.

Bisection here is the largest flow between the first half of the fabric's units and
the rest, where a unit is what is below the top layer: a node under one leaf, a leaf
under spines, a pod under cores, a group of a dragonfly. `topology` builds the same
fabrics link by link, and the two are tested against each other.
"""

from math import ceil
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from tenfold.model.fleet.spec import Fabric, FabricKind

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]
Ints = np.ndarray[tuple[int], np.dtype[np.int64]]


class FabricPlan(Struct, frozen=True, kw_only=True):
    """A fabric with its layers sized for the nodes connected to it.

    `leaf_hosts` is what the nodes of each leaf can send together, in bytes a second;
    in a rail-optimised fabric a leaf stands for the group of rail switches that one
    set of nodes shares, in a dragonfly for one switch.
    """

    name: str
    kind: FabricKind
    nodes: int
    rails: int
    nodes_per_leaf: int
    leaves_per_pod: int
    spines: int
    leaf_hosts: Floats
    leaf_up: Floats
    pod_up: float
    oversubscription: float
    core_oversubscription: float
    nodes_max: int

    @property
    def leaves(self) -> int:
        """Leaves (rail groups, dragonfly switches) that have nodes."""
        return len(self.leaf_hosts)

    @property
    def pods(self) -> int:
        """Pods of leaves (dragonfly groups); 1 where one layer joins all leaves."""
        return max(1, ceil(self.leaves / self.leaves_per_pod))


def plan_fabric(
    fabric: Fabric,
    node_bandwidth: Floats,
    nics_per_node: int,
    leaf_starts: Ints | None = None,
) -> FabricPlan:
    """Return the layers that a fabric needs for nodes of these bandwidths, in leaf order.

    `leaf_starts` gives the first node of each leaf where leaves are not filled evenly.
    """
    nodes = len(node_bandwidth)
    nodes_per_leaf = leaf_size(fabric, nodes, nics_per_node)
    starts = np.arange(0, nodes, nodes_per_leaf) if leaf_starts is None else leaf_starts
    leaves = max(1, len(starts))
    leaves_per_pod = _leaves_per_pod(fabric, leaves, fabric.switch_ports)
    hosts = np.add.reduceat(node_bandwidth, starts) if nodes else np.zeros(0)
    fastest = np.maximum.reduceat(node_bandwidth, starts) if nodes else np.zeros(0)
    up = fastest * nodes_per_leaf / fabric.oversubscription
    full_leaf_up = float(up.max()) if nodes else 0.0
    pod_up = full_leaf_up * leaves_per_pod / fabric.core_oversubscription
    if fabric.kind == "dragonfly":
        pod_up = full_leaf_up * leaves_per_pod
    return FabricPlan(
        name=fabric.id,
        kind=fabric.kind,
        nodes=nodes,
        rails=nics_per_node,
        nodes_per_leaf=nodes_per_leaf,
        leaves_per_pod=leaves_per_pod,
        spines=_spines(fabric, leaves, leaves_per_pod, nodes_per_leaf * nics_per_node),
        leaf_hosts=hosts,
        leaf_up=up,
        pod_up=pod_up,
        oversubscription=fabric.oversubscription,
        core_oversubscription=fabric.core_oversubscription,
        nodes_max=_nodes_max(
            fabric,
            nodes_per_leaf,
            leaves_per_pod,
            leaves,
            1 if fabric.kind == "rail-optimised" else nics_per_node,
        ),
    )


def leaf_size(fabric: Fabric, nodes: int, nics: int) -> int:
    """Return how many nodes connect to one leaf.

    Unless stated: half a switch for nodes and half for uplinks, or all of it if that
    is enough for the whole fabric.
    """
    if fabric.nodes_per_leaf is not None:
        return fabric.nodes_per_leaf
    ports_per_node = 1 if fabric.kind == "rail-optimised" else nics
    if fabric.kind != "dragonfly" and nodes * ports_per_node <= fabric.switch_ports:
        return max(1, nodes)
    down = fabric.switch_ports * fabric.oversubscription / (1 + fabric.oversubscription)
    share = 0.5 if fabric.kind == "dragonfly" else 1.0
    return max(1, int(down * share / ports_per_node))


def _leaves_per_pod(fabric: Fabric, leaves: int, ports: int) -> int:
    if fabric.kind == "dragonfly":
        return fabric.switches_per_group
    if fabric.leaves_per_pod is not None:
        return fabric.leaves_per_pod
    # A spine reaches as many leaves as it has ports; beyond that half of them go up.
    return leaves if leaves <= ports else ports // 2


def _spines(fabric: Fabric, leaves: int, leaves_per_pod: int, ports_down: int) -> int:
    """Return the spines of one pod: as many as the leaves' uplinks fill, never one alone."""
    if fabric.kind == "dragonfly" or leaves == 1:
        return 0
    if fabric.spines is not None:
        return fabric.spines
    uplinks = ports_down / fabric.oversubscription
    needed = ceil(uplinks * min(leaves, leaves_per_pod) / fabric.switch_ports)
    return max(2, needed)


def _nodes_max(
    fabric: Fabric, nodes_per_leaf: int, leaves_per_pod: int, leaves: int, ports_per_node: int
) -> int:
    """Return how many nodes fit before the fabric needs another layer."""
    ports = fabric.switch_ports
    if fabric.kind == "dragonfly":
        global_links = max(1, ports // 4) * leaves_per_pod
        return nodes_per_leaf * leaves_per_pod * (global_links + 1)
    if leaves == 1:
        # One switch that is not full yet takes nodes until its ports are gone.
        return max(nodes_per_leaf, ports // max(1, ports_per_node))
    if leaves <= leaves_per_pod and fabric.leaves_per_pod is None:
        return nodes_per_leaf * ports
    return nodes_per_leaf * leaves_per_pod * ports


def bisection(plan: FabricPlan) -> float:
    """Return bytes a second between the first half of the top layer's units and the rest."""
    if plan.nodes < 2:
        return 0.0
    if plan.leaves == 1:
        per_node = float(plan.leaf_hosts[0]) / plan.nodes
        return per_node * (plan.nodes // 2)
    reach = np.minimum(plan.leaf_hosts, plan.leaf_up)
    if plan.kind == "dragonfly":
        return _dragonfly(plan)
    if plan.pods == 1:
        return _smaller_half(reach)
    starts = np.arange(0, plan.leaves, plan.leaves_per_pod)
    return _smaller_half(np.minimum(np.add.reduceat(reach, starts), plan.pod_up))


def _smaller_half(units: Floats) -> float:
    middle = len(units) // 2
    return float(min(units[:middle].sum(), units[middle:].sum()))


def _dragonfly(plan: FabricPlan) -> float:
    groups = plan.pods
    if groups == 1:
        return _smaller_half(plan.leaf_hosts)
    split = (groups // 2) * plan.leaves_per_pod
    hosts = float(min(plan.leaf_hosts[:split].sum(), plan.leaf_hosts[split:].sum()))
    crossing_pairs = (groups // 2) * (groups - groups // 2)
    return min(hosts, crossing_pairs * pair_bandwidth(plan))


def pair_bandwidth(plan: FabricPlan) -> float:
    """Return what joins two groups of a dragonfly, one way."""
    return plan.pod_up / max(1, plan.pods - 1)


class BindingLayer(NamedTuple):
    """An oversubscribed layer of a fabric."""

    code: str
    below: str
    above: str
    ratio: float


def binding_layers(plan: FabricPlan) -> list[BindingLayer]:
    """Return the oversubscribed layers, lowest first."""
    layers: list[BindingLayer] = []
    below = "group" if plan.kind == "dragonfly" else "leaf"
    above = "global links" if plan.kind == "dragonfly" else "spine"
    several = plan.pods > 1 if plan.kind == "dragonfly" else plan.leaves > 1
    if several and plan.oversubscription > 1:
        layers.append(BindingLayer(f"{below}-uplinks", below, above, plan.oversubscription))
    if plan.kind != "dragonfly" and plan.pods > 1 and plan.core_oversubscription > 1:
        layers.append(BindingLayer("pod-uplinks", "spine", "core", plan.core_oversubscription))
    return layers
