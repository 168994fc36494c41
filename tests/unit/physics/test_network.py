"""The network of a pool: the slowest of its parts, the class of its links, and its routing."""

import pytest

from tenfold.compose.fleet import open_fleet
from tenfold.physics.network import PoolNetwork, pool_network, static_share

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
