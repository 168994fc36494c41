"""A fleet that is extended by its own pattern."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tenfold.compose.fleet import load_fleet
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.spec import FleetSpec, Rack
from tenfold.model.ids import PoolId, RackId, TeamId
from tenfold.model.policy.governance import GovernanceRules, TeamRules
from tenfold.physics.nodes import nodes_of
from tenfold.study.grow.runs.fleet import grown_fleet, grown_govern

EXAMPLES = Path(__file__).parents[5] / "examples"


@pytest.fixture(scope="module")
def research() -> FleetSpec:
    return load_fleet(EXAMPLES / "research-256" / "fleet.toml")


def with_pools(spec: FleetSpec, *lists: str) -> FleetSpec:
    """The fleet with pools of these host lists, all like its first."""
    pools = [
        replace(
            spec.pools[0],
            id=PoolId(f"p{place}"),
            node_names=names,
            nodes=len(hostlist.expand(names)),
        )
        for place, names in enumerate(lists)
    ]
    return replace(spec, pools=tuple(pools), racks=(), domains=())


def test_factor_one_and_less_is_the_fleet_itself(research: FleetSpec):
    assert grown_fleet(research, 1) is research
    assert grown_fleet(research, 0.5) is research


def test_names_are_counted_on_and_keep_their_width(research: FleetSpec):
    assert grown_fleet(with_pools(research, "n[1-4]"), 1.5).pools[0].node_names == "n[1-6]"
    assert grown_fleet(with_pools(research, "n[008-009]"), 2).pools[0].node_names == "n[008-011]"
    assert grown_fleet(with_pools(research, "login"), 3).pools[0].node_names == "login,login-[2-3]"


def test_a_name_of_another_pool_is_not_given_twice(research: FleetSpec):
    bigger = grown_fleet(with_pools(research, "n[1-2]", "n[3-4]"), 2)
    names = [hostlist.expand(pool.node_names) for pool in bigger.pools]
    assert names == [["n1", "n2", "n5", "n6"], ["n3", "n4", "n7", "n8"]]


def test_shared_layers_stay_as_they_are(research: FleetSpec):
    bigger = grown_fleet(research, 3)
    assert (bigger.tiers, bigger.links, bigger.sites) == (
        research.tiers,
        research.links,
        research.sites,
    )
    assert (bigger.fabrics, bigger.teams) == (research.fabrics, research.teams)
    assert bigger.nodes == 3 * research.nodes


def test_pools_of_one_node_grow_one_after_the_other(research: FleetSpec):
    spec = with_pools(research, "a1", "b1", "c1", "d1")
    assert [pool.nodes for pool in grown_fleet(spec, 1.5).pools] == [2, 2, 1, 1]
    assert [pool.nodes for pool in grown_fleet(spec, 2).pools] == [2, 2, 2, 2]


def test_stated_racks_are_followed_by_racks_alike(research: FleetSpec):
    spec = with_pools(research, "n[1-4]")
    site = spec.sites[0].id
    racks = (
        Rack(id=RackId("r1"), site=site, nodes="n[1-2]", hall="east", power_kw_limit=30),
        Rack(id=RackId("r2"), site=site, nodes="n[3-4]", hall="east", power_kw_limit=30),
    )
    bigger = grown_fleet(replace(spec, racks=racks), 1.75)
    assert bigger.racks[:2] == racks
    assert bigger.racks[2:] == (
        Rack(id=RackId("r3"), site=site, nodes="n[5-6]", hall="east", power_kw_limit=30),
        Rack(id=RackId("r4"), site=site, nodes="n7", hall="east", power_kw_limit=30),
    )
    assert [node.rack for node in nodes_of(bigger)] == ["r1", "r1", "r2", "r2", "r3", "r3", "r4"]


@pytest.mark.parametrize("name", ["one-rack", "research-256", "bank-three-sites", "nvl72"])
def test_every_node_of_an_example_stands_where_it_stood(name: str):
    spec = load_fleet(next((EXAMPLES / name).glob("fleet.*")))
    before = {node.id: node for node in nodes_of(spec)}
    after = {node.id: node for node in nodes_of(grown_fleet(spec, 1.6))}
    assert len(after) == round(spec.nodes * 1.6)
    for node_id, node in before.items():
        assert (after[node_id].pool, after[node_id].rack) == (node.pool, node.rack)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.floats(1, 8), st.floats(1, 8))
def test_a_larger_factor_has_every_node_of_a_smaller_one(
    research: FleetSpec, sizes: list[int], one: float, other: float
):
    lists = [f"{chr(97 + place)}[1-{size}]" for place, size in enumerate(sizes)]
    spec = with_pools(research, *lists)
    less, more = (grown_fleet(spec, factor) for factor in sorted((one, other)))
    assert less.nodes == sum(sizes) + round(sum(sizes) * (min(one, other) - 1))
    for small, large in zip(less.pools, more.pools, strict=True):
        names = hostlist.expand(small.node_names)
        assert hostlist.expand(large.node_names)[: len(names)] == names


def test_copies_of_teams_have_the_terms_of_their_models():
    terms = TeamRules(id=TeamId("a"), parent=TeamId("root"), quota={"any": 8_000})
    grown = grown_govern(GovernanceRules(teams=(terms,)), ["a", "a~1", "b~1", "a~1"])
    assert grown.teams == (terms, replace(terms, id=TeamId("a~1")))
    assert grown_govern(GovernanceRules(), ["a~1"]) == GovernanceRules()
