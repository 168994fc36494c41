"""What is asked when a fleet grows: the axis, the limits, and what the fleet file does not say.

A fleet file describes what stands there. Whether growth breaks it also depends on how long a
wait is bearable, who repairs nodes, what is stored and served, and how long things take to
come: figures that nobody puts in an inventory. What is None was not stated, and a layer
that would need it is unknown.
"""

from typing import Literal, get_args

from msgspec import Struct

from tenfold.model.units import Bytes

Axis = Literal["jobs", "job-size", "data", "traffic", "teams", "nodes", "all"]
"""What grows by the factor.

jobs: arrivals of jobs. job-size: GPUs of each job, at equal work. data: bytes of datasets, of
reads and of checkpoints. traffic: requests to services. teams: more queues of the same kinds,
with their jobs. nodes: the fleet by its own pattern, with jobs for it, on the shared layers
there are. all: nodes, data, traffic and teams together; jobs keep their size.
"""
AXES: tuple[Axis, ...] = get_args(Axis)
Quantity = Literal["jobs", "job-size", "data", "traffic", "teams", "nodes"]
"""One thing that demand is made of; an axis moves one or several."""

Grade = Literal["measured", "calibrated", "published", "assumed"]
"""How well a breaking factor is known, best first."""
GRADES: tuple[Grade, ...] = get_args(Grade)
ControllerKind = Literal["tenfold", "slurm", "kueue"]
Thing = Literal["nodes", "site-power", "rack-power", "rack", "switch", "link", "floor", "storage"]
"""What is ordered to relieve a layer, and has a lead time."""

_MOVES: dict[Axis, tuple[Quantity, ...]] = {
    "jobs": ("jobs",),
    "job-size": ("job-size",),
    "data": ("data",),
    "traffic": ("traffic",),
    "teams": ("teams", "jobs"),
    "nodes": ("nodes", "jobs"),
    "all": ("nodes", "jobs", "data", "traffic", "teams"),
}


def moves(axis: Axis, quantity: Quantity) -> bool:
    """Return whether a quantity grows along an axis."""
    return quantity in _MOVES[axis]


def grown_by(axis: Axis, quantity: Quantity, factor: float) -> float:
    """Return the factor by which a quantity has grown at a factor of the axis."""
    return factor if moves(axis, quantity) else 1.0


class Limits(Struct, frozen=True, kw_only=True):
    """Where each layer counts as broken. The defaults are assumptions, and printed."""

    wait_s_p90: float = 14_400.0
    step_efficiency_least: float = 0.8
    stall_share_most: float = 0.05
    attainment_least: float = 0.99
    kw_most: float | None = None
    usd_per_month_most: float | None = None
    headroom_least: float = 0.0
    """Share of every capacity that is to stay free."""
    admission_wait_s_most: float = 300.0
    spare_shortfall_share_most: float = 0.01
    fairness_least: float = 0.8
    stranded_share_most: float = 0.15
    lost_share_most: float = 0.1
    """Share of time that saves and failures may take from a job."""


class Controller(Struct, frozen=True, kw_only=True):
    """What admits jobs, and how fast it is set to do so."""

    kind: ControllerKind = "tenfold"
    queue: str = ""
    cycles_per_min: float | None = None
    heads_per_cycle: int = 1
    """Jobs that are tried of each queue in a cycle."""
    admitted_share: float | None = None
    """Share of the jobs tried that are admitted."""
    cost_ms_per_job: float | None = None


class Monitoring(Struct, frozen=True, kw_only=True):
    """What is scraped, how often, and where it is kept."""

    series_per_node: float | None = None
    series_per_gpu: float | None = None
    interval_s: float | None = None
    samples_per_s_most: float | None = None
    retention_days: float | None = None
    bytes_per_sample: float = 1.7
    store_bytes: Bytes | None = None


class Operations(Struct, frozen=True, kw_only=True):
    """Who mends nodes, and what stands in for them meanwhile."""

    crew: float | None = None
    repairs_per_person_day: float | None = None
    nodes_per_person_most: float | None = None
    usd_per_person_month: float | None = None
    spares: int | None = None
    checkpoint_every_min: float | None = None
    """How often jobs save that do not say so themselves; None is hourly."""


class Facility(Struct, frozen=True, kw_only=True):
    """What the building still has: places for racks in all, and switch ports that are free."""

    floor_racks: int | None = None
    ports_free: int | None = None


class ServiceLoad(Struct, frozen=True, kw_only=True):
    """A service, what is asked of it today, and what it promises."""

    name: str
    model: str
    qps: float
    input_tokens: int
    output_tokens: int
    ttft_s: float | None = None
    tpot_s: float | None = None
    pool: str = ""
    replicas_most: int | None = None


class Dataset(Struct, frozen=True, kw_only=True):
    """Bytes that lie on a tier, and the axis along which they grow."""

    name: str
    tier: str
    bytes: Bytes
    grows_with: Axis = "data"
    source_site: str = ""
    """The site that it is staged from, if not the tier's own."""


class LeadTime(Struct, frozen=True, kw_only=True):
    """How long a thing takes from order to use."""

    thing: str
    weeks_p50: float
    weeks_p90: float


class Pace(Struct, frozen=True, kw_only=True):
    """How fast demand grows, and from when. The clock is never asked."""

    today: str
    """A day as `2026-11-15`."""
    doubles_in_months: float


class GrowSpec(Struct, frozen=True, kw_only=True):
    """Everything that is asked beside the fleet."""

    limits: Limits = Limits()
    controllers: tuple[Controller, ...] = ()
    services: tuple[ServiceLoad, ...] = ()
    datasets: tuple[Dataset, ...] = ()
    monitoring: Monitoring = Monitoring()
    operations: Operations = Operations()
    facility: Facility = Facility()
    lead_times: tuple[LeadTime, ...] = ()
    pace: Pace | None = None
