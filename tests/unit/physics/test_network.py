"""The network of a pool: the slowest of its parts, the class of its links, and its routing."""

import numpy as np
import pytest

from tenfold.compose.fleet import open_fleet
from tenfold.model.estimate import TrainRow
from tenfold.physics.network import PoolNetwork, pool_network, server_ports, static_share
from tenfold.study.estimate.fill import fill
from tenfold.study.plan.target import train_target
from training_builders import CATALOGUE

POOL = """
[[pool]]
name = "a"
accelerator = "H100"
nodes = 64
gpus_per_node = 8
fabric = "net"
{pool}
[[fabric]]
name = "net"
{fabric}
"""


@pytest.fixture
def network(tmp_path):
    def made(fabric: str, pool: str = "") -> PoolNetwork:
        file = tmp_path / "fleet.toml"
        file.write_text(POOL.format(fabric=fabric, pool=pool))
        fleet = open_fleet(file)
        return pool_network(fleet.layout, fleet.spec.pools[0], fleet.catalogue)

    return made


def test_the_slower_of_nic_and_link_counts(network):
    ndr, hdr = (network(f'link = "InfiniBand-{name}"') for name in ("NDR", "HDR"))
    assert ndr.bytes_per_s == pytest.approx(50e9)
    assert hdr.bytes_per_s == pytest.approx(25e9)
    narrow = network('link = "InfiniBand-NDR"', "nic_gbps = 100")
    assert narrow.bytes_per_s == pytest.approx(12.5e9)


def test_kernel_tcp_reaches_less_of_its_rate_and_takes_longer(network):
    rdma, tcp = network('link = "RoCE-400"'), network('link = "Ethernet-400"')
    assert tcp.bytes_per_s < 0.8 * rdma.bytes_per_s
    assert tcp.pod_delay_s > rdma.pod_delay_s + 15e-6


def test_without_gpudirect_pcie_is_crossed_twice(network):
    direct = network('link = "InfiniBand-NDR"', "gpudirect = true")
    copied = network('link = "InfiniBand-NDR"', "gpudirect = false")
    assert copied.bytes_per_s == pytest.approx(31.5e9)
    assert copied.leaf_delay_s > direct.leaf_delay_s


def test_static_routing_costs_only_beyond_a_leaf(network):
    even = network('link = "RoCE-400"')
    hashed = network('link = "RoCE-400"\nadaptive_routing = false')
    assert hashed.bytes_per_s == even.bytes_per_s
    assert (even.spine_share, 0.5 < hashed.spine_share < 0.8) == (1.0, True)


@pytest.mark.parametrize("flows", [1, 4, 16])
def test_more_links_and_fewer_flows_collide_more(flows: int):
    shares = [static_share(links, flows) for links in (1, 8, 32, 128)]
    assert shares[0] == 1.0
    assert shares == sorted(shares, reverse=True)
    assert static_share(32, flows) <= static_share(32, 4 * flows)


def test_hashed_flows_fill_their_fullest_link_as_drawn():
    """32 links and 16 flows each: the fullest link of 20,000 draws has 24.8 flows on average."""
    assert 16 / static_share(32) == pytest.approx(24.8, abs=1.0)


@pytest.mark.parametrize(
    ("name", "gpus", "nics", "gbps"),
    [
        ("H800", 8, 8, 400),
        ("H20", 8, 8, 400),
        ("A800", 8, 8, 200),
        # A known server with another number of GPUs: its NICs per GPU.
        ("H100", 4, 4, 400),
        # Cards without a scale-up link share a port.
        ("A40", 8, 2, 200),
    ],
)
def test_a_server_that_is_not_known_has_ports_as_fast_as_its_slots(name, gpus, nics, gbps):
    ports = server_ports(CATALOGUE.accelerators.get(name), gpus, CATALOGUE)
    assert (ports.nics, ports.gbps) == (nics, gbps)


def test_a_pool_without_nics_gets_those_of_a_server_and_the_plan_says_so(tmp_path):
    file = tmp_path / "fleet.toml"
    file.write_text("[[pool]]\nname = 'a'\naccelerator = 'H800'\nnodes = 4\n")
    fleet = open_fleet(file)
    pool = fleet.spec.pools[0]
    assert pool_network(fleet.layout, pool, fleet.catalogue).bytes_per_s == pytest.approx(50e9)
    notes = train_target(fleet).notes
    assert any("8 x 400 Gbit/s per node assumed" in note for note in notes)


@pytest.mark.parametrize("name", ["H800", "H20", "A800", "H100", "MI250X", "A40"])
def test_an_estimate_supposes_the_network_that_a_fleet_does(tmp_path, name):
    file = tmp_path / "fleet.toml"
    file.write_text(f"[[pool]]\nname = 'a'\naccelerator = '{name}'\nnodes = 4\n")
    pool = open_fleet(file).spec.pools[0]
    row = TrainRow(
        id="a", model="Llama 3.1 8B", accelerator=name, gpus=4 * pool.gpus_per_node, gpus_per_node=8
    )
    rate = float(np.asarray(fill(row, CATALOGUE).plan.nic_bytes_s))
    assert rate == pytest.approx(pool.nics_per_node * pool.nic_bandwidth / pool.gpus_per_node)
