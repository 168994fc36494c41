"""A fabric link by link: nodes, switches and the capacity of each cable bundle.

Small fabrics only need this to be checked against closed forms; the simulator needs it
to know which links two jobs share.
"""

from collections.abc import Iterator

from msgspec import Struct

from tenfold.physics.fabric import FabricPlan, pair_bandwidth


class Graph(Struct, frozen=True, kw_only=True):
    """Vertices 0..nodes-1 are nodes, the rest switches; links work both ways."""

    nodes: int
    vertices: int
    links: tuple[tuple[int, int, float], ...]
    """Pairs of vertices and bytes a second each way."""

    def neighbours(self) -> dict[int, list[int]]:
        """Return the vertices next to each vertex."""
        near: dict[int, list[int]] = {vertex: [] for vertex in range(self.vertices)}
        for a, b, _ in self.links:
            near[a].append(b)
            near[b].append(a)
        return near


def build_graph(plan: FabricPlan, node_bandwidth: float) -> Graph:
    """Return the links of a fabric whose nodes are all alike."""
    if plan.kind == "dragonfly":
        links = tuple(_dragonfly(plan, node_bandwidth))
    elif plan.kind == "rail-optimised":
        links = tuple(_rails(plan, node_bandwidth))
    else:
        links = tuple(_fat_tree(plan, node_bandwidth))
    top = max((max(a, b) for a, b, _ in links), default=plan.nodes - 1)
    return Graph(nodes=plan.nodes, vertices=top + 1, links=links)


def _fat_tree(plan: FabricPlan, node_bandwidth: float) -> Iterator[tuple[int, int, float]]:
    leaf = plan.nodes
    for node in range(plan.nodes):
        yield node, leaf + node // plan.nodes_per_leaf, node_bandwidth
    yield from _above_leaves(plan, leaf, plan.leaves, 1)


def _rails(plan: FabricPlan, node_bandwidth: float) -> Iterator[tuple[int, int, float]]:
    leaf = plan.nodes
    for node in range(plan.nodes):
        group = node // plan.nodes_per_leaf
        for rail in range(plan.rails):
            yield node, leaf + group * plan.rails + rail, node_bandwidth / plan.rails
    yield from _above_leaves(plan, leaf, plan.leaves * plan.rails, plan.rails)


def _above_leaves(
    plan: FabricPlan, first_leaf: int, switches: int, rails: int
) -> Iterator[tuple[int, int, float]]:
    """Yield leaf to spine links in each pod, then spine to core links."""
    if plan.leaves == 1:
        return
    spine = first_leaf + switches
    for position in range(switches):
        leaf = position // rails
        pod = leaf // plan.leaves_per_pod
        share = float(plan.leaf_up[leaf]) / rails / plan.spines
        for plane in range(plan.spines):
            yield first_leaf + position, spine + pod * plan.spines + plane, share
    if plan.pods == 1:
        return
    core = spine + plan.pods * plan.spines
    for pod in range(plan.pods):
        for plane in range(plan.spines):
            # One core switch a plane: all pods' spines of that plane meet there.
            yield spine + pod * plan.spines + plane, core + plane, plan.pod_up / plan.spines


def _dragonfly(plan: FabricPlan, node_bandwidth: float) -> Iterator[tuple[int, int, float]]:
    switch = plan.nodes
    local = node_bandwidth * plan.nodes_per_leaf
    for node in range(plan.nodes):
        yield node, switch + node // plan.nodes_per_leaf, node_bandwidth
    for group in range(plan.pods):
        members = _members(plan, group)
        for place, a in enumerate(members):
            for b in members[place + 1 :]:
                yield switch + a, switch + b, local
    # Global links leave from switches in turn, so that no switch carries them all.
    for a in range(plan.pods):
        for b in range(a + 1, plan.pods):
            from_a, from_b = _members(plan, a), _members(plan, b)
            yield (
                switch + from_a[(b - 1) % len(from_a)],
                switch + from_b[a % len(from_b)],
                pair_bandwidth(plan),
            )


def _members(plan: FabricPlan, group: int) -> list[int]:
    first = group * plan.leaves_per_pod
    return list(range(first, min(first + plan.leaves_per_pod, plan.leaves)))
