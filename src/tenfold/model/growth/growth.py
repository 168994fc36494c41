"""The grow file: axes, limits, and what the fleet file does not say.

A fleet file describes the hardware. Whether growth breaks it also depends on acceptable waits,
repair staff, stored data, services and lead times: figures that are in no inventory. None means not
stated; a layer that needs it is unknown. These structs are the tables of a grow file, in the units
that people write; bounds are wide, to catch a wrong unit and not an unusual fleet.
"""

from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct

from tenfold.model.units import HOURS_PER_MONTH, Bytes

Axis = Literal["jobs", "job-size", "data", "traffic", "teams", "nodes", "all"]
"""What grows by the factor.

jobs: arrival rate of jobs. job-size: GPUs per job, at equal work. data: bytes of datasets; what a
GPU reads and a job saves stays. traffic: requests to services. teams: more teams of the same kinds,
with their jobs. nodes: more nodes in today's pattern, with jobs for them, on today's shared layers.
all: nodes, data, traffic and teams together; jobs keep their size.
"""
AXES: tuple[Axis, ...] = get_args(Axis)
Quantity = Literal["jobs", "job-size", "data", "traffic", "teams", "nodes"]
"""One component of demand; an axis grows one or several."""

Grade = Literal["measured", "calibrated", "published", "assumed"]
"""How well a breaking factor is known, best first."""
GRADES: tuple[Grade, ...] = get_args(Grade)
ControllerKind = Literal["tenfold", "slurm", "kueue"]
OrderItem = Literal[
    "nodes", "site-power", "rack-power", "rack", "switch", "link", "floor", "storage"
]
"""What is ordered to fix a layer, and has a lead time."""
LeadStage = Literal["order", "delivery", "installation", "integration", "validation"]
"""One part of a lead time, in the order in which they pass."""
UnitItem = Literal[
    "switch-port", "rack-position", "power-kw", "technician", "storage-tb", "link-gbps"
]
"""What is bought by unit; the name of its price in the facts."""

_GROWS_ALONG: dict[Axis, tuple[Quantity, ...]] = {
    "jobs": ("jobs",),
    "job-size": ("job-size",),
    "data": ("data",),
    "traffic": ("traffic",),
    "teams": ("teams", "jobs"),
    "nodes": ("nodes", "jobs"),
    "all": ("nodes", "jobs", "data", "traffic", "teams"),
}


def grows_along(axis: Axis, quantity: Quantity) -> bool:
    """Return whether a quantity grows along an axis."""
    return quantity in _GROWS_ALONG[axis]


def grown_by(axis: Axis, quantity: Quantity, factor: float) -> float:
    """Return the factor by which a quantity has grown at a factor of the axis."""
    return factor if grows_along(axis, quantity) else 1.0


Name = Annotated[str, Meta(min_length=1, max_length=200)]
Share = Annotated[float, Meta(gt=0, le=1)]
Seconds = Annotated[float, Meta(gt=0, le=1e9)]
Count = Annotated[int, Meta(ge=0, le=100_000_000)]
Rate = Annotated[float, Meta(gt=0, le=1e12)]
Weeks = Annotated[float, Meta(ge=0, le=1_000)]
Months = Annotated[float, Meta(gt=0, le=1_200)]
Tokens = Annotated[int, Meta(ge=1, le=100_000_000)]
Many = Annotated[int, Meta(ge=1, le=1_000_000)]
Tb = Annotated[float, Meta(gt=0, le=100_000_000)]
Kw = Annotated[float, Meta(gt=0, le=10_000_000)]
Usd = Annotated[float, Meta(ge=0, le=1e12)]
BYTES_PER_TB = 10**12
SECONDS_PER_MONTH = HOURS_PER_MONTH * 3_600


class GrowTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of a grow file; an unknown key is an error."""


class GrowthLimits(GrowTable, frozen=True, kw_only=True):
    """The limit at which each layer counts as broken. The defaults are assumptions, and printed."""

    wait_s_p90: Seconds = 14_400.0
    step_efficiency_least: Share = 0.8
    stall_share_most: Share = 0.05
    attainment_least: Annotated[float, Meta(ge=0.5, lt=1)] = 0.99
    """Share of requests that must meet their latency targets."""
    kw_most: Kw | None = None
    usd_per_month_most: Usd | None = None
    headroom_least: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    """Share of every capacity to keep free."""
    admission_wait_s_most: Seconds = 300.0
    spare_shortfall_share_most: Share = 0.01
    fairness_least: Share = 0.8
    stranded_share_most: Share = 0.15
    lost_share_most: Share = 0.1
    """Share of a job's time that checkpoints and failures may take."""


class Controller(GrowTable, frozen=True, kw_only=True):
    """A controller that admits jobs, and how fast it is configured."""

    kind: ControllerKind
    queue: str = ""
    cycles_per_min: Rate | None = None
    heads_per_cycle: Many = 1
    """Jobs of each queue tried per cycle."""
    admitted_share: Share | None = None
    """Share of the tried jobs that are admitted."""
    cost_ms_per_job: Annotated[float, Meta(gt=0, le=1e9)] | None = None


class ServiceLoad(GrowTable, frozen=True, kw_only=True):
    """A service, its load today, and its latency targets."""

    name: Name
    model: Name
    qps: Rate
    input_tokens: Tokens
    output_tokens: Tokens
    ttft_s: Seconds | None = None
    tpot_s: Seconds | None = None
    pool: str = ""
    replicas_most: Many | None = None


class Dataset(GrowTable, frozen=True, kw_only=True):
    """A dataset on a tier, and the axis along which it grows."""

    name: Name
    tier: Name
    tb: Tb
    grows_with: Axis = "data"
    source_site: str = ""
    """The site it is copied from, if not the tier's own."""
    copies_per_month: Rate | None = None
    """How often it is copied from there in whole."""

    @property
    def bytes(self) -> Bytes:
        """Its size today."""
        return Bytes(round(self.tb * BYTES_PER_TB))

    @property
    def staged_bytes_per_s(self) -> float:
        """What its copies move between sites today, on average."""
        return self.tb * BYTES_PER_TB * (self.copies_per_month or 0.0) / SECONDS_PER_MONTH


class Monitoring(GrowTable, frozen=True, kw_only=True):
    """What is scraped, how often, and where it is stored."""

    series_per_node: Rate | None = None
    series_per_gpu: Rate | None = None
    interval_s: Seconds | None = None
    samples_per_s_most: Rate | None = None
    retention_days: Annotated[float, Meta(gt=0, le=100_000)] | None = None
    bytes_per_sample: Annotated[float, Meta(gt=0, le=10_000)] = 1.7
    store_tb: Tb | None = None

    @property
    def store_bytes(self) -> Bytes | None:
        """Storage for samples."""
        return None if self.store_tb is None else Bytes(round(self.store_tb * BYTES_PER_TB))


class Operations(GrowTable, frozen=True, kw_only=True):
    """Who repairs nodes, and how many spares replace them meanwhile."""

    crew: Annotated[float, Meta(gt=0, le=1_000_000)] | None = None
    repairs_per_person_day: Annotated[float, Meta(gt=0, le=10_000)] | None = None
    nodes_per_person_most: Annotated[float, Meta(gt=0, le=1_000_000)] | None = None
    usd_per_person_month: Usd | None = None
    spares: Count | None = None
    checkpoint_every_min: Annotated[float, Meta(gt=0, le=100_000)] | None = None
    """Checkpoint interval of jobs that do not state one; None is hourly."""


class Facility(GrowTable, frozen=True, kw_only=True):
    """What the building has: rack positions in total, and free switch ports."""

    floor_racks: Count | None = None
    ports_free: Count | None = None


class Prices(GrowTable, frozen=True, kw_only=True):
    """What capacity costs a month; None takes the range of the facts, an assumption."""

    usd_per_switch_port_month: Usd | None = None
    usd_per_rack_month: Usd | None = None
    usd_per_kw_month: Usd | None = None
    usd_per_tb_month: Usd | None = None
    usd_per_gbps_month: Usd | None = None


class LeadTime(GrowTable, frozen=True, kw_only=True):
    """How long an item takes from order to use."""

    thing: OrderItem
    weeks_p50: Weeks
    weeks_p90: Weeks
    stages: dict[LeadStage, tuple[Weeks, Weeks]] = {}
    """P50 and P90 of each stage in weeks; if stated, the total follows from them."""


class Pace(GrowTable, frozen=True, kw_only=True):
    """How fast demand grows, and from when. The system clock is not used."""

    today: str
    """A day such as `2026-11-15`."""
    doubles_in_months: Months


class Grown(GrowTable, frozen=True, kw_only=True):
    """What a planned fleet was grown from; `grow --apply` writes it.

    The job history, failures and switches are those of the original fleet.
    """

    fleet: Name
    """The original fleet file, relative to the grow file."""
    policy: str = ""
    """The new policy; empty: the policy that the jobs ran under."""
    sched_max_job_start: Many | None = None
    quota_gpus: dict[str, Annotated[float, Meta(ge=0, le=1e9)]] = {}
    """Quotas of teams under the policy `governed`."""
    free_borrowing: bool = False
    """Whether teams borrow and lend without a limit."""
    async_checkpoints: bool = False
    capacity: dict[str, Annotated[float, Meta(gt=0, le=1e9)]] = {}
    """Multiples of capacities that no other key states, by layer and resource."""
    usd_per_month: Annotated[float, Meta(ge=0, le=1e12)] = 0.0
    """What the ports, racks, power and links of the applied fixes cost."""


class GrowSpec(Struct, frozen=True, kw_only=True):
    """Everything the grow file states."""

    limits: GrowthLimits = GrowthLimits()
    controllers: tuple[Controller, ...] = ()
    services: tuple[ServiceLoad, ...] = ()
    datasets: tuple[Dataset, ...] = ()
    monitoring: Monitoring = Monitoring()
    operations: Operations = Operations()
    facility: Facility = Facility()
    lead_times: tuple[LeadTime, ...] = ()
    prices: Prices = Prices()
    pace: Pace | None = None
    grown: Grown | None = None
