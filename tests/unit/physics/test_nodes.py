"""From a fleet file to nodes: where each stands, what it bears and what it draws."""

from pathlib import Path

import pytest

from tenfold.compose.fleet import load_fleet
from tenfold.model.fleet.node import Node
from tenfold.physics.nodes import nodes_of

POOL = '[[pool]]\nname = "p"\naccelerator = "H100"\ngpus_per_node = 8\n'


@pytest.fixture
def made(tmp_path: Path):
    def make(text: str) -> list[Node]:
        path = tmp_path / "fleet.toml"
        path.write_text(text)
        return list(nodes_of(load_fleet(path)))

    return make


def test_nodes_know_their_leaf_and_pod(made):
    fabric = (
        '[[fabric]]\nname = "f"\nkind = "fat-tree"\nlink = "ib-ndr"\nswitch_ports = 64\n'
        "nodes_per_leaf = 2\nleaves_per_pod = 2\n"
    )
    nodes = made(fabric + POOL + 'fabric = "f"\nnodes = 6\n')
    assert [node.leaf for node in nodes[::2]] == ["f-leaf-1", "f-leaf-2", "f-leaf-3"]
    assert [node.pod for node in nodes[::2]] == ["f-pod-1", "f-pod-1", "f-pod-2"]


def test_a_fabric_without_pods_is_one_pod(made):
    assert len({node.pod for node in made(POOL + "nodes = 12\n")}) == 1
    assert all(node.pod for node in made(POOL + "nodes = 12\n"))


def test_neighbours_in_a_rack_share_a_scale_up_domain_that_is_larger_than_a_node(made):
    nodes = made(
        '[[pool]]\nname = "p"\naccelerator = "GB200"\ngpus_per_node = 4\nscaleup_gpus = 8\n'
        "nodes = 6\nnodes_per_rack = 4\n"
    )
    assert [node.scaleup for node in nodes] == [
        "p-rack-1-scale-up-1",
        "p-rack-1-scale-up-1",
        "p-rack-1-scale-up-2",
        "p-rack-1-scale-up-2",
        "p-rack-2-scale-up-1",
        "p-rack-2-scale-up-1",
    ]


def test_a_rack_scale_system_is_one_scale_up_domain_a_rack():
    nodes = list(nodes_of(load_fleet(Path("examples/nvl72/fleet.toml"))))
    wide = [node for node in nodes if node.scaleup]
    assert wide
    assert len({node.scaleup for node in wide}) == len({node.rack for node in wide})


def test_nodes_whose_scale_up_domain_is_the_node_name_none(made):
    assert {node.scaleup for node in made(POOL + "nodes = 2\n")} == {""}


def test_tags_are_residency_certifications_and_use_the_sites_where_the_pool_says_none(made):
    site = '[[site]]\nname = "s"\nresidency = ["NO", "EU"]\ncertifications = ["ISO-27001"]\n'
    plain = made(site + POOL + "nodes = 1\n")
    own = made(site + POOL + 'nodes = 1\nresidency = ["NO"]\nuse = "production"\n')
    assert plain[0].tags == ("EU", "ISO-27001", "NO")
    assert own[0].tags == ("ISO-27001", "NO", "production")


def test_a_rack_that_carries_its_nodes_at_full_load_sets_no_limit(made):
    power = "nodes = 4\nnodes_per_rack = 4\npower_kw_per_node = 10\n"
    loose = made('[[site]]\nname = "s"\nrack_kw = 40\n' + POOL + power)
    tight = made('[[site]]\nname = "s"\nrack_kw = 30\n' + POOL + power)
    assert {node.rack_watts for node in loose} == {0}
    assert {node.rack_watts for node in tight} == {30_000}
    assert tight[0].watts_idle == 1_200
    assert tight[0].watts_idle + 8 * tight[0].watts_per_gpu == 10_000


def test_the_limit_that_a_rack_states_goes_before_that_of_the_site(made):
    rack = '[[rack]]\nname = "r"\nsite = "s"\nnodes = "n[1-2]"\npower_kw = 15\n'
    pool = POOL + 'node_names = "n[1-4]"\nnodes_per_rack = 2\npower_kw_per_node = 10\n'
    nodes = made('[[site]]\nname = "s"\nrack_kw = 40\n' + pool + rack)
    assert [node.rack_watts for node in nodes] == [15_000, 15_000, 0, 0]


def test_nodes_without_gpus_draw_their_power_at_all_times(made):
    nodes = made('[[pool]]\nname = "c"\nshape = "CPU-server"\nnodes = 1\npower_kw_per_node = 1\n')
    assert (nodes[0].watts_idle, nodes[0].watts_per_gpu) == (1_000, 0)
