"""Solves the capacities of a fleet for the factors that its layers are to stand."""

from math import exp, log
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.fleet.spec import Fabric, FleetSpec, Pool, Price, Site, Tier
from tenfold.model.growth.growth import Axis, Dataset, Facility, GrowSpec
from tenfold.model.ids import FabricId, PoolId, SiteId, TierId
from tenfold.model.units import Bytes, BytesPerSecond, UsdMicros
from tests.rigs.planted.jobs import ACCELERATOR, OF_RUNS, bare_work, work_limits
from tests.rigs.planted.plan import (
    NODE_GPUS,
    WITH_NODES,
    Plan,
    Replica,
    UsageLine,
    Work,
)
from tests.rigs.planted.truth import slowed_most
from tests.rigs.planted.upkeep import Upkeep
from tests.rigs.planted.upkeep_truth import nodes_usd_per_month

NICS, PER_RACK = 8, 4
HALL, NET = SiteId("hall"), FabricId("net")
MEASURED = ("monitoring", "gateway")
DRAWN = ("storage-read", "checkpoint-burst")
TIER_W = 8_000


def between(draw: Random, low: float, high: float) -> float:
    """Draw a factor, any doubling as likely as any other."""
    return exp(draw.uniform(log(low), log(high)))


class Order(Struct, frozen=True, kw_only=True):
    """What is to be planted."""

    axis: Axis
    first: str
    wanted: dict[str, float]
    """What each layer is to stand; a layer of the axis that is not here is not told of."""
    grows: tuple[str, ...]
    """Layers that grow along the axis; others are made tight today, as decoys."""
    tight: float = 1.02
    stalls: bool = False
    """Whether jobs may lose no more time to neighbours than is usual."""


class Maker:
    """Makes one fleet."""

    def __init__(
        self, draw: Random, order: Order, cooling_kw: tuple[float, ...], replica: Replica | None
    ) -> None:
        self.draw, self.order, self.wanted = draw, order, order.wanted
        self.cooling_kw, self.replica = cooling_kw, replica
        self.kind = order.first if order.first in OF_RUNS else ""
        self.nodes = self._nodes()
        self.pue = draw.choice((1.1, 1.25, 1.4))
        self.rack_kw, self.node_w = self._rack()
        self.work = self._work()
        self.upkeep = Upkeep(draw, self.wanted, self.nodes, replica)

    def plan(self) -> Plan:
        """Return the fleet with all that decides where it breaks."""
        spec = self._spec()
        measured = [name for name in MEASURED if name in self.wanted]
        stated = "monitoring" in measured and self._states_monitoring()
        made = Plan(
            axis=self.order.axis,
            spec=spec,
            grow=self._grow(spec, stated),
            work=self.work,
            lines=tuple(self._line(one) for one in measured if one == "gateway" or not stated),
            failures=self.upkeep.failures(),
            replica=self.replica if "serving" in self.wanted else None,
            counts_assumed="storage-streams" in self.wanted,
        )
        if self.order.stalls or not made.runs_count:
            return made
        limits = replace(made.grow.limits, stall_share_most=max(0.05, slowed_most(made)))
        return replace(made, grow=replace(made.grow, limits=limits))

    def _nodes(self) -> int:
        if self.kind:
            return 16 if self.kind == "queue" else 32
        # Runs of jobs that slow each other down are dear, and more nodes would not break later.
        return 16 if self._draws else self.draw.choice((32, 64, 96))

    @property
    def _draws(self) -> bool:
        return any(layer in self.wanted for layer in (*DRAWN, "storage-streams"))

    def _stands(self, layer: str) -> float | None:
        """Return what a layer is to stand; one that does not grow is tight today, a decoy."""
        if layer in self.wanted or layer in self.order.grows:
            return self.wanted.get(layer)
        return between(self.draw, self.order.tight, 2 * self.order.tight)

    def _states_monitoring(self) -> bool:
        return self.order.axis in WITH_NODES and self.draw.random() < 0.5

    def _rack(self) -> tuple[float, int]:
        """Racks are nearly full on purpose: new nodes bring racks, so that none gets fuller."""
        stands = between(self.draw, self.order.tight, 2 * self.order.tight)
        if self.draw.random() < 0.5:
            limit = self.draw.choice(self.cooling_kw)
            return limit, round(limit * 1_000 / (PER_RACK * stands))
        node_w = self.draw.randrange(4_000, 14_000, 100)
        # A tenth more than a round figure, lest it be that of a kind of cooling.
        return round(PER_RACK * node_w * stands / 1_000) + 0.1, node_w

    def _work(self) -> Work | None:
        wanted, draw = self.wanted, self.draw
        of_work = ("queue", "admission", "step-efficiency", *OF_RUNS)
        if not self._draws and not any(layer in wanted for layer in of_work):
            return None
        work = bare_work(draw, self.order.axis, self.kind, wanted, self.nodes)
        reads = "storage-read" in wanted or "storage-streams" in wanted
        saves = "checkpoint-burst" in wanted and "storage-streams" not in wanted
        return replace(
            work,
            read_bytes_per_s_per_gpu=draw.uniform(0.05e9, 0.5e9) if reads else 0.0,
            save_bytes=round(draw.uniform(0.2e12, 2e12)) if saves else 0.0,
            save_every_s=draw.choice((14_400.0, 28_800.0)) if saves else 0.0,
        )

    def _spec(self) -> FleetSpec:
        site_k = self._stands("site-power")
        tier = self._tier()
        site = Site(
            id=HALL,
            power_kw_limit=None if site_k is None else self._kw(site_k),
            rack_kw_limit=self.rack_kw,
            pue=self.pue,
            usd_per_kwh=0.1,
            co2_g_per_kwh=100.0,
        )
        # A fabric that the file would not state raises no alarm where free ports are not told.
        fabric = Fabric(
            id=NET,
            site=HALL,
            kind="rail-optimised",
            link="InfiniBand-NDR",
            switch_ports=64,
            defaulted=True,
        )
        return FleetSpec(
            name="planted", sites=(site,), pools=(self._pool(),), fabrics=(fabric,), tiers=(tier,)
        )

    def _kw(self, stands: float) -> float:
        spares_w = (self.upkeep.operations().spares or 0) * self.node_w
        return (self.nodes * self.node_w * stands + spares_w + TIER_W) * self.pue / 1_000

    def _pool(self) -> Pool:
        told = self.draw.random() < 0.5
        hourly = UsdMicros(round(self.draw.uniform(1e6, 4e6)))
        kind = self.draw.choice(("owned", "reserved"))
        priced = Price(kind=kind, usd_micros_per_hour=hourly, basis="stated")
        return Pool(
            id=PoolId("train"),
            site=HALL,
            fabric=NET,
            accelerator=ACCELERATOR,
            shape=None,
            nodes=self.nodes,
            node_names=f"n[1-{self.nodes}]",
            gpus_per_node=NODE_GPUS,
            cpus_per_node=96,
            memory_bytes_per_node=Bytes(2**41),
            scaleup_gpus=NODE_GPUS,
            nics_per_node=NICS,
            nic_bandwidth=BytesPerSecond(50_000_000_000),
            gpudirect=True,
            pcie_lanes=16,
            pcie_switched=True,
            nvme_drives=8,
            nvme_bandwidth=BytesPerSecond(40_000_000_000),
            power_w_per_node=self.node_w,
            nodes_per_rack=PER_RACK,
            price=priced if "money" in self.wanted else None,
            defaulted=() if told else ("nodes_per_rack",),
        )

    def _tier(self) -> Tier:
        work, wanted = self.work or Work(jobs=1, every_s=1.0, runs_s=1.0), self.wanted
        readers = work.running * work.gpus
        read = readers * work.read_bytes_per_s_per_gpu * self._drawn("storage-read")
        saves = work.save_bytes / work.save_every_s if work.save_bytes else 0.0
        write = work.running * saves * self._drawn("checkpoint-burst")
        # A tier that holds no dataset is not asked about its capacity.
        held = self.draw.uniform(50e12, 5_000e12)
        self.dataset_bytes = Bytes(round(held))
        return Tier(
            id=TierId("fast"),
            site=HALL,
            role="hot",
            tier_class="hot",
            shelves=4,
            capacity=Bytes(round(held * wanted.get("storage-capacity", 1.5))),
            read_bandwidth=BytesPerSecond(round(read or 1e12)),
            write_bandwidth=BytesPerSecond(round(write or 1e12)),
            iops=1_000_000,
            streams=max(1, round(readers * wanted.get("storage-streams", 1_000.0))),
            latency_us=200.0,
            usd_micros_per_tb_month=UsdMicros(10_000_000),
            power_w=TIER_W,
        )

    def _drawn(self, layer: str) -> float:
        """Return how many times today's draw a tier gives."""
        return self.wanted.get(layer, 1_000.0)

    def _grow(self, spec: FleetSpec, states_monitoring: bool) -> GrowSpec:
        budget, ports = self._stands("power-budget"), self._stands("switch-ports")
        floor, racks = self._stands("floor"), self.nodes // PER_RACK
        spare_racks = -(-(self.upkeep.operations().spares or 0) // PER_RACK)
        wanted, upkeep = self.wanted, self.upkeep
        sets = (Dataset(name="corpus", tier="fast", tb=self.dataset_bytes / 10**12),)
        return GrowSpec(
            limits=replace(
                work_limits(self.kind, wanted.get(self.kind, 1.0)),
                kw_most=None if budget is None else self._kw(budget),
                usd_per_month_most=self._budget(spec),
            ),
            facility=Facility(
                floor_racks=None
                if floor is None
                else max(racks, round(racks * floor)) + spare_racks,
                ports_free=None if ports is None else round(self.nodes * NICS * (ports - 1)),
            ),
            datasets=sets if "storage-capacity" in wanted else (),
            controllers=upkeep.controllers(self.work),
            operations=upkeep.operations(),
            monitoring=upkeep.monitoring(states_monitoring),
            services=upkeep.services(grows=self.order.axis in WITH_NODES),
        )

    def _budget(self, spec: FleetSpec) -> float | None:
        if "money" not in self.wanted:
            return None
        [site], [pool], [tier] = spec.sites, spec.pools, spec.tiers
        tier_usd = tier.usd_micros_per_tb_month / 1e6 * tier.capacity / 1e12
        return nodes_usd_per_month(site, pool) * self.wanted["money"] + tier_usd

    def _line(self, layer: str) -> UsageLine:
        grows = self.draw.uniform(0.5, 50.0)
        still = grows * self.draw.uniform(0.0, 1.0)
        return UsageLine(
            layer=layer, still=still, grows=grows, limit=still + grows * self.wanted[layer]
        )
