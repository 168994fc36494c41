"""Fleets with a break planted in them: each capacity is solved for the factor it is to stand.

An axis is drawn, then the layer that breaks first and its factor, then factors for all other
layers, well behind it. Layers that do not grow along the axis are made tight today on purpose:
they are decoys for whoever names the fullest layer. Another decoy is a tier that starves jobs,
so that waits grow, too. What a layer really stands is then told by `planted_truth`, since
capacities are rounded to whole places and ports.
"""

from math import exp, log
from random import Random

from msgspec import Struct

from tenfold.model.fleet_spec import Fabric, FleetSpec, Pool, Site, Tier
from tenfold.model.growth import Axis, Dataset, Facility, GrowSpec, Limits
from tenfold.model.ids import FabricId, JobId, PoolId, SiteId, TeamId, TierId
from tenfold.model.job import Job, shape_of
from tenfold.model.measured import UsagePoint
from tenfold.model.traffic import Traffic, WorkProfile
from tenfold.model.units import SECOND, Bytes, BytesPerSecond, Millis, UsdMicros
from tenfold.testing.planted_truth import Plan, UsageLine, Work, breaks, first_of

BUILDING = ("site-power", "power-budget", "rack", "switch-ports", "floor")
MEASURED = ("monitoring", "gateway")
LAYERS: dict[Axis, tuple[str, ...]] = {
    "nodes": (*BUILDING, "storage-read", "checkpoint-burst", *MEASURED),
    "all": (*BUILDING, "storage-capacity", "storage-read", "checkpoint-burst", *MEASURED),
    "data": ("storage-capacity", "storage-read", "checkpoint-burst", *MEASURED),
    "jobs": ("queue", "storage-read", "checkpoint-burst", "storage-streams", *MEASURED),
}
"""Layers that grow along an axis."""
AXES: tuple[Axis, ...] = ("nodes", "nodes", "all", "data", "jobs")
FIRST_LEAST, FIRST_MOST = 1.3, 8.0
BEHIND_LEAST, BEHIND_MOST = 1.35, 20.0
SOUND_LEAST, SOUND_MOST = 21.0, 60.0
"""More than twice the largest factor that is asked for."""
APART = 1.2
"""Rounding may bring the second break nearer; closer than this no first is defined."""
DRAWS_MOST = 50
GPUS, NICS, PER_RACK = 8, 8, 4
DAY_S = 86_400.0
TRAINING = "training"


class Planted(Struct, frozen=True, kw_only=True):
    """A fleet with its work, as values, and where it breaks."""

    seed: int
    plan: Plan
    jobs: tuple[Job, ...]
    starts_ms: dict[JobId, Millis]
    profiles: dict[str, WorkProfile]
    measured: tuple[UsagePoint, ...]
    k_by_layer: dict[str, float]
    first: str
    """The layer that breaks first; empty where nothing breaks before 20x."""
    k: float


def planted(seed: int, cooling_kw: tuple[float, ...]) -> Planted:
    """Return a fleet in which one layer clearly breaks first, between 1.3x and 8x."""
    draw = Random(seed)
    for _ in range(DRAWS_MOST):
        axis = draw.choice(AXES)
        first = draw.choice(LAYERS[axis])
        k = _between(draw, FIRST_LEAST, FIRST_MOST)
        wanted = {
            layer: k if layer == first else k * _between(draw, BEHIND_LEAST, BEHIND_MOST)
            for layer in LAYERS[axis]
            if layer == first or draw.random() < 0.8
        }
        made = _Maker(draw, axis, wanted, cooling_kw, runs=first == "queue").made(seed)
        behind = first_of(made.k_by_layer)[2]
        if 1.2 < made.k < APART * FIRST_MOST and behind > made.k * APART:
            return made
    raise AssertionError(f"seed {seed} gives no fleet with a first break")


def starved(seed: int, cooling_kw: tuple[float, ...]) -> Planted:
    """Return a fleet whose tier starves jobs, so that waits break soon after: an effect."""
    draw = Random(seed)
    k = _between(draw, FIRST_LEAST, 4.0)
    wanted = {"storage-read": k, "queue": k * _between(draw, BEHIND_LEAST, 2.0)}
    return _Maker(draw, "jobs", wanted, cooling_kw, runs=True).made(seed)


def sound(seed: int, cooling_kw: tuple[float, ...]) -> Planted:
    """Return a fleet in which no layer breaks before 20x; every other one says little of itself."""
    draw = Random(seed)
    axis = draw.choice(AXES)
    told = 1.0 if seed % 2 else 0.5
    wanted = {
        layer: _between(draw, SOUND_LEAST, SOUND_MOST)
        for layer in LAYERS[axis]
        if layer != "storage-streams" and draw.random() < told
    }
    if axis == "all":
        wanted = {layer: k * k if layer in DRAWN else k for layer, k in wanted.items()}
    return _Maker(draw, axis, wanted, cooling_kw, runs=False, loose=True).made(seed)


DRAWN = ("storage-read", "checkpoint-burst")


def _between(draw: Random, low: float, high: float) -> float:
    """Draw a factor, any doubling as likely as any other."""
    return exp(draw.uniform(log(low), log(high)))


class _Maker:
    """Solves the capacities of one fleet for the factors that its layers are to stand."""

    def __init__(
        self,
        draw: Random,
        axis: Axis,
        wanted: dict[str, float],
        cooling_kw: tuple[float, ...],
        *,
        runs: bool,
        loose: bool = False,
    ) -> None:
        self.axis: Axis = axis
        self.draw, self.wanted, self.cooling_kw = draw, wanted, cooling_kw
        self.nodes = 16 if runs else draw.choice((32, 64))
        self.tight = 3.0 if loose else 1.02
        self.pue = draw.choice((1.1, 1.25, 1.4))
        self.rack_kw, self.node_w = self._rack()
        self.work = self._work(runs)

    def made(self, seed: int) -> Planted:
        """Return the fleet with all that is known of it."""
        lines = tuple(self._line(layer) for layer in MEASURED if layer in self.wanted)
        plan = Plan(
            axis=self.axis,
            spec=self._spec(),
            grow=self._grow(),
            work=self.work if self._draws or "queue" in self.wanted else None,
            lines=lines,
            counts_assumed="storage-streams" in self.wanted,
            cooling_kw=self.cooling_kw,
        )
        k_by_layer = breaks(plan)
        first, k, _ = first_of(k_by_layer) if k_by_layer else ("", 0.0, 0.0)
        jobs = () if plan.work is None else _jobs(self.work)
        return Planted(
            seed=seed,
            plan=plan,
            jobs=jobs,
            starts_ms={job.id: job.submitted_ms for job in jobs if self.work.is_run},
            profiles=_profiles(self.work) if self._draws else {},
            measured=tuple(point for line in lines for point in _points(line)),
            k_by_layer=k_by_layer,
            first=first,
            k=k,
        )

    def _stands(self, layer: str) -> float | None:
        """Return what a layer is to stand; one that does not grow is tight today, a decoy."""
        if layer in self.wanted or layer in LAYERS[self.axis]:
            return self.wanted.get(layer)
        return _between(self.draw, self.tight, 2 * self.tight)

    @property
    def _draws(self) -> bool:
        return any(layer in self.wanted for layer in (*DRAWN, "storage-streams"))

    def _rack(self) -> tuple[float, int]:
        stands = self._stands("rack") or 2.0
        if self.draw.random() < 0.5:
            limit = self.draw.choice(self.cooling_kw)
            return limit, round(limit * 1_000 / (PER_RACK * stands))
        node_w = self.draw.randrange(4_000, 14_000, 100)
        # A tenth more than a round figure, lest it be that of a kind of cooling.
        return round(PER_RACK * node_w * stands / 1_000) + 0.1, node_w

    def _work(self, runs: bool) -> Work:
        jobs = 400 if runs or "storage-streams" in self.wanted else 40
        every_s = 10 * DAY_S / jobs
        queue = self.wanted.get("queue", 100.0 if self.axis == "jobs" else 20.0)
        reads = "storage-read" in self.wanted or "storage-streams" in self.wanted
        saves = "checkpoint-burst" in self.wanted and "storage-streams" not in self.wanted
        return Work(
            jobs=jobs,
            every_s=every_s,
            runs_s=round(self.nodes * every_s / queue),
            read_bytes_per_s_per_gpu=self.draw.uniform(0.05e9, 0.5e9) if reads else 0.0,
            save_bytes=round(self.draw.uniform(0.2e12, 2e12)) if saves else 0.0,
            save_every_s=self.draw.choice((14_400.0, 28_800.0)) if saves else 0.0,
            is_run=runs,
        )

    def _spec(self) -> FleetSpec:
        hall, net = SiteId("hall"), FabricId("net")
        site_k = self._stands("site-power")
        tiers = (self._tier(hall),)
        still_w = sum(tier.power_w for tier in tiers)
        site = Site(
            id=hall,
            power_kw_limit=None if site_k is None else self._kw(site_k, still_w),
            rack_kw_limit=self.rack_kw,
            pue=self.pue,
            usd_per_kwh=0.1,
            co2_g_per_kwh=100.0,
        )
        # A fabric that the file would not state raises no alarm where free ports are not told.
        fabric = Fabric(
            id=net,
            site=hall,
            kind="rail-optimised",
            link="InfiniBand-NDR",
            switch_ports=64,
            defaulted=True,
        )
        pools = (self._pool(hall, net),)
        return FleetSpec(name="planted", sites=(site,), pools=pools, fabrics=(fabric,), tiers=tiers)

    def _kw(self, stands: float, still_w: int) -> float:
        return (self.nodes * self.node_w * stands + still_w) * self.pue / 1_000

    def _pool(self, hall: SiteId, net: FabricId) -> Pool:
        told = self._stands("rack") is not None
        return Pool(
            id=PoolId("train"),
            site=hall,
            fabric=net,
            accelerator="H100",
            shape=None,
            nodes=self.nodes,
            node_names=f"n[1-{self.nodes}]",
            gpus_per_node=GPUS,
            cpus_per_node=96,
            memory_bytes_per_node=Bytes(2**41),
            scaleup_gpus=GPUS,
            nics_per_node=NICS,
            nic_bandwidth=BytesPerSecond(50_000_000_000),
            gpudirect=True,
            pcie_lanes=16,
            pcie_switched=True,
            nvme_drives=8,
            nvme_bandwidth=BytesPerSecond(40_000_000_000),
            power_w_per_node=self.node_w,
            nodes_per_rack=PER_RACK,
            defaulted=() if told else ("nodes_per_rack",),
        )

    def _tier(self, hall: SiteId) -> Tier:
        work, wanted = self.work, self.wanted
        readers = work.running * GPUS
        read = readers * work.read_bytes_per_s_per_gpu * self._drawn("storage-read")
        saves = work.save_bytes / work.save_every_s if work.save_bytes else 0.0
        write = work.running * saves * self._drawn("checkpoint-burst")
        # A tier that holds no dataset is not asked about its capacity.
        held = self.draw.uniform(50e12, 5_000e12)
        self.dataset_bytes = Bytes(round(held))
        return Tier(
            id=TierId("fast"),
            site=hall,
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
            power_w=8_000,
        )

    def _drawn(self, layer: str) -> float:
        """Return how many times today's draw a tier gives; along all axes draws grow twice."""
        stands = self.wanted.get(layer, 1_000.0)
        return stands * stands if self.axis == "all" and layer in self.wanted else stands

    def _grow(self) -> GrowSpec:
        budget, ports = self._stands("power-budget"), self._stands("switch-ports")
        floor, racks = self._stands("floor"), self.nodes // PER_RACK
        used = self.nodes * NICS
        sets = (
            (Dataset(name="corpus", tier="fast", bytes=self.dataset_bytes),)
            if "storage-capacity" in self.wanted
            else ()
        )
        return GrowSpec(
            limits=Limits(
                wait_s_p90=DAY_S / 2, kw_most=None if budget is None else self._kw(budget, 8_000)
            ),
            facility=Facility(
                floor_racks=None if floor is None else max(racks, round(racks * floor)),
                ports_free=None if ports is None else round(used * (ports - 1)),
            ),
            datasets=sets,
        )

    def _line(self, layer: str) -> UsageLine:
        grows = self.draw.uniform(0.5, 50.0)
        still = grows * self.draw.uniform(0.0, 1.0)
        return UsageLine(
            layer=layer, still=still, grows=grows, limit=still + grows * self.wanted[layer]
        )


def _points(line: UsageLine) -> list[UsagePoint]:
    """Return what is measured up to today: a quarter of the demand, a half, and all of it."""
    return [
        UsagePoint(
            layer=line.layer,
            resource="server",
            factor=factor,
            usage=line.still + line.grows * factor,
            limit=line.limit,
        )
        for factor in (0.25, 0.5, 0.75, 1.0)
    ]


def _jobs(work: Work) -> tuple[Job, ...]:
    shape = shape_of(GPUS)
    return tuple(
        Job(
            id=JobId(f"job-{number}"),
            shape=shape,
            submitted_ms=Millis(round(number * work.every_s * SECOND)),
            seq=number,
            team=TeamId("all"),
            duration_ms=Millis(round(work.runs_s * SECOND)),
            profile=TRAINING,
        )
        for number in range(work.jobs)
    )


def _profiles(work: Work) -> dict[str, WorkProfile]:
    traffic = Traffic(
        read_bytes_per_s_per_gpu=work.read_bytes_per_s_per_gpu,
        tier="fast",
        checkpoint_bytes=Bytes(round(work.save_bytes)),
        checkpoint_every_ms=Millis(round(work.save_every_s * SECOND)),
    )
    return {TRAINING: WorkProfile(traffic=traffic)}
