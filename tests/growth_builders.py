"""Small fleets that grow, in memory, for tests of growth analysis."""

from functools import cache

from tenfold.compose.fleet import OpenFleet, load_facts
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.spec import Fabric, FleetSpec, Pool, Site, Tier
from tenfold.model.growth.growth import Axis, GrowSpec
from tenfold.model.ids import FabricId, PoolId, SiteId, TierId
from tenfold.model.units import Bytes, BytesPerSecond, UsdMicros
from tenfold.physics.layout import lay_out
from tenfold.study.grow.calibrate import Calibration, Compared
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layer import ComputedLayer, Constraint
from tenfold.study.grow.state import State

HALL = SiteId("hall")
EXACT = Calibration(
    jobs=100,
    wait_error=0.0,
    utilisation_error=0.0,
    order_tau=1.0,
    wait_s=Compared(0.0, 0.0, 0.0),
    utilisation=Compared(0.0, 0.0, 0.0),
    calibrated=True,
)
"""Of a history that its simulation reproduces to the letter."""


@cache
def catalogue() -> Catalogue:
    return load_facts()


def site(power_kw: float | None = 1_000.0, rack_kw: float = 45.0) -> Site:
    return Site(
        id=HALL,
        power_kw_limit=power_kw,
        rack_kw_limit=rack_kw,
        pue=1.25,
        usd_per_kwh=0.1,
        co2_g_per_kwh=100.0,
    )


def pool(nodes: int = 32, *, defaulted: tuple[str, ...] = ()) -> Pool:
    return Pool(
        id=PoolId("train"),
        site=HALL,
        fabric=FabricId("net"),
        accelerator="H100",
        shape=None,
        nodes=nodes,
        node_names=f"n[1-{nodes}]",
        gpus_per_node=8,
        cpus_per_node=96,
        memory_bytes_per_node=Bytes(2**41),
        scaleup_gpus=8,
        nics_per_node=8,
        nic_bandwidth=BytesPerSecond(50_000_000_000),
        gpudirect=True,
        pcie_lanes=16,
        pcie_switched=True,
        nvme_drives=8,
        nvme_bandwidth=BytesPerSecond(40_000_000_000),
        power_w_per_node=10_000,
        nodes_per_rack=4,
        defaulted=defaulted,
    )


def tier(shelves: int = 4, *, tb: int = 4_000, gb_per_s: int = 40) -> Tier:
    return Tier(
        id=TierId("fast"),
        site=HALL,
        role="hot",
        tier_class="hot",
        shelves=shelves,
        capacity=Bytes(tb * 10**12),
        read_bandwidth=BytesPerSecond(gb_per_s * 10**9),
        write_bandwidth=BytesPerSecond(gb_per_s * 10**9 // 2),
        iops=1_000_000,
        streams=4_096,
        latency_us=200.0,
        usd_micros_per_tb_month=UsdMicros(10_000_000),
        power_w=8_000,
    )


def fleet(
    *,
    power_kw: float | None = 1_000.0,
    rack_kw: float = 45.0,
    nodes: int = 32,
    tiers: tuple[Tier, ...] = (),
    defaulted: tuple[str, ...] = (),
) -> OpenFleet:
    net = Fabric(
        id=FabricId("net"),
        site=HALL,
        kind="rail-optimised",
        link="InfiniBand-NDR",
        switch_ports=64,
        nodes_per_leaf=16,
    )
    spec = FleetSpec(
        name="small",
        sites=(site(power_kw, rack_kw),),
        pools=(pool(nodes, defaulted=defaulted),),
        fabrics=(net,),
        tiers=tiers,
    )
    return OpenFleet(spec=spec, layout=lay_out(spec), catalogue=catalogue())


def given(opened: OpenFleet, grow: GrowSpec | None = None) -> GrowInputs:
    return GrowInputs(fleet=opened, grow=grow or GrowSpec())


def evaluated(state: State, axis: Axis, *layers: ComputedLayer) -> list[Constraint]:
    return [constraint for layer in layers for constraint in layer.evaluated(state, axis)]
