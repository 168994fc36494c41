"""Closed forms of bisection against the fabrics built link by link."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_flow, shortest_path

from tenfold.model.fleet.spec import Fabric
from tenfold.model.ids import FabricId, SiteId
from tenfold.physics.fabric import FabricPlan, binding_layers, bisection, plan_fabric
from tests.rigs.fabric_graph import Graph, build_graph

NIC = 6912.0 * 420  # Divides by every number of spines, rails, ratios and groups drawn below.
BIG = 2**30


def fabric(kind: str, **more: object) -> Fabric:
    fields = {"switch_ports": 64, "link": "", **more}
    return Fabric(id=FabricId("f"), site=SiteId("s"), kind=kind, **fields)  # pyright: ignore


def plan(made: Fabric, nodes: int, nics: int = 1) -> FabricPlan:
    return plan_fabric(made, np.full(nodes, NIC * nics), nics)


def half_of(made: FabricPlan) -> int:
    """The number of nodes in the first half of the top layer's units."""
    if made.leaves == 1:
        return made.nodes // 2
    if made.pods == 1:
        return (made.leaves // 2) * made.nodes_per_leaf
    return (made.pods // 2) * made.leaves_per_pod * made.nodes_per_leaf


def cut(graph: Graph, first_half: int) -> float:
    """The largest flow from the first nodes to the rest."""
    source, sink = graph.vertices, graph.vertices + 1
    links = [(a, b, c) for a, b, c in graph.links] + [(b, a, c) for a, b, c in graph.links]
    links += [(source, node, BIG) for node in range(first_half)]
    links += [(node, sink, BIG) for node in range(first_half, graph.nodes)]
    merged: dict[tuple[int, int], int] = {}
    for a, b, capacity in links:
        assert capacity == int(capacity), "the drawn sizes keep capacities whole"
        merged[a, b] = merged.get((a, b), 0) + int(capacity)
    rows, columns = zip(*merged, strict=True)
    size = graph.vertices + 2
    matrix = csr_matrix(
        (np.fromiter(merged.values(), dtype=np.int32), (rows, columns)), shape=(size, size)
    )
    return float(maximum_flow(matrix, source, sink).flow_value)


ratios = st.sampled_from([1.0, 2.0, 3.0, 4.0])


@settings(max_examples=120, deadline=None)
@given(
    kind=st.sampled_from(["fat-tree", "rail-optimised"]),
    nodes=st.integers(2, 60),
    nodes_per_leaf=st.integers(1, 9),
    leaves_per_pod=st.none() | st.integers(1, 5),
    spines=st.sampled_from([1, 2, 3, 4, 6]),
    nics=st.sampled_from([1, 2, 4]),
    ratio=ratios,
    core=ratios,
)
def test_bisection_of_a_tree_equals_its_largest_flow(
    kind, nodes, nodes_per_leaf, leaves_per_pod, spines, nics, ratio, core
):
    made = plan(
        fabric(
            kind,
            nodes_per_leaf=nodes_per_leaf,
            leaves_per_pod=leaves_per_pod,
            spines=spines,
            oversubscription=ratio,
            core_oversubscription=core,
        ),
        nodes,
        nics,
    )
    assert bisection(made) == cut(build_graph(made, NIC * nics), half_of(made))


@settings(max_examples=60, deadline=None)
@given(
    groups=st.integers(2, 8),
    switches=st.integers(1, 4),
    nodes_per_switch=st.integers(1, 4),
    ratio=ratios,
)
def test_bisection_of_a_dragonfly_equals_its_largest_flow(
    groups, switches, nodes_per_switch, ratio
):
    """Full groups only: with a part-filled one, long ways round carry a little more."""
    made = plan(
        fabric(
            "dragonfly",
            nodes_per_leaf=nodes_per_switch,
            switches_per_group=switches,
            oversubscription=ratio,
        ),
        groups * switches * nodes_per_switch,
    )
    assert bisection(made) == cut(build_graph(made, NIC), half_of(made))


@given(nodes_per_leaf=st.integers(1, 8), leaves=st.integers(2, 40), ratio=ratios)
def test_oversubscription_divides_the_bisection_of_full_leaves(nodes_per_leaf, leaves, ratio):
    def of(oversubscription: float) -> FabricPlan:
        made = fabric("fat-tree", nodes_per_leaf=nodes_per_leaf, oversubscription=oversubscription)
        return plan(made, nodes_per_leaf * leaves)

    assert bisection(of(ratio)) == bisection(of(1.0)) / ratio
    assert bisection(of(1.0)) == NIC * nodes_per_leaf * (leaves // 2)
    layers = [layer.code for layer in binding_layers(of(ratio))]
    assert layers == (["leaf-uplinks"] if ratio > 1 else [])


@given(nodes=st.integers(2, 300), kind=st.sampled_from(["fat-tree", "rail-optimised", "dragonfly"]))
def test_a_fabric_with_defaults_joins_all_its_nodes(nodes, kind):
    made = plan(fabric(kind, switch_ports=16), nodes, nics=2)
    graph = build_graph(made, NIC * 2)
    rows = [a for a, _, _ in graph.links]
    columns = [b for _, b, _ in graph.links]
    matrix = csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(graph.vertices,) * 2)
    hops = shortest_path(matrix, directed=False, unweighted=True, indices=[0])[0][:nodes]
    assert np.isfinite(hops).all()
    # Links crossed: node to switch, between switches, switch to node.
    longest = {"fat-tree": 6, "rail-optimised": 6, "dragonfly": 5}[kind]
    assert hops.max() <= longest
    assert 0 < bisection(made) <= NIC * 2 * (nodes / 2)


@given(more=st.integers(0, 200))
def test_bisection_never_falls_when_full_leaves_are_added(more):
    made = fabric("fat-tree", nodes_per_leaf=4)
    assert bisection(plan(made, 8 + 4 * more)) >= bisection(plan(made, 8 + 4 * max(0, more - 1)))
