"""Fleets whose layers are shared, and gangs on them, for tests of contention."""

from pathlib import Path

from msgspec.structs import replace

from tenfold.files.fleet.read import load_fleet
from tenfold.model.fleet.spec import FabricKind, Tier
from tenfold.model.ids import JobId, NodeId, TierId
from tenfold.model.job.traffic import Traffic
from tenfold.model.units import Bytes, BytesPerSecond, UsdMicros
from tenfold.physics.layout import lay_out
from tenfold.physics.shared_layers import SharedLayers, shared_layers
from training_builders import CATALOGUE

EXAMPLE = Path(__file__).parents[1] / "examples" / "oversubscribed" / "fleet.toml"
BASE = load_fleet(EXAMPLE, CATALOGUE)
NIC = 50e9
"""Bytes a second that each GPU of the fleet can send."""


def layers(
    ratio: float = 4.0,
    *,
    nodes: int = 32,
    core: float = 1.0,
    leaves_per_pod: int | None = None,
    kind: FabricKind = "fat-tree",
    rack_kw: float = 1_000.0,
    read: float = 100e9,
    write: float = 50e9,
) -> SharedLayers:
    """Nodes of 8 GPUs, 8 to a leaf and 4 to a rack, with one tier called `hot`."""
    fabric = replace(
        BASE.fabrics[0],
        kind=kind,
        oversubscription=ratio,
        core_oversubscription=core,
        leaves_per_pod=leaves_per_pod,
        switches_per_group=leaves_per_pod or 8,
    )
    pool = replace(BASE.pools[0], nodes=nodes, node_names=f"n[1-{nodes}]", power_w_per_node=10_000)
    site = replace(BASE.sites[0], rack_kw_limit=rack_kw)
    tier = Tier(
        id=TierId("hot"),
        site=site.id,
        role="hot",
        tier_class="",
        shelves=1,
        capacity=Bytes(10**15),
        read_bandwidth=BytesPerSecond(int(read)),
        write_bandwidth=BytesPerSecond(int(write)),
        iops=10**6,
        streams=10**4,
        latency_us=100.0,
        usd_micros_per_tb_month=UsdMicros(0),
        power_w=0,
    )
    spec = replace(BASE, sites=(site,), fabrics=(fabric,), pools=(pool,), tiers=(tier,), domains=())
    return shared_layers(lay_out(spec))


def gang(*numbers: int, gpus: float = 8) -> list[tuple[NodeId, float]]:
    """Nodes by number from 1, each with the same GPUs."""
    return [(NodeId(f"n{number}"), gpus) for number in numbers]


def talker(share: float = 0.2, rate: float = NIC) -> Traffic:
    return Traffic(network_bytes_per_s_per_gpu=rate, network_share=share)


def reader(rate: float = 1e9, share: float = 1.0) -> Traffic:
    return Traffic(read_bytes_per_s_per_gpu=rate, read_share=share, tier="hot")


A, B, C = JobId("job-a"), JobId("job-b"), JobId("job-c")
