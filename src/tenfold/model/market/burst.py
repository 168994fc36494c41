"""Burst: jobs that would be late on your own nodes, and nodes that are rented for them."""

from typing import Annotated

from msgspec import Meta, Struct

from tenfold.model.reason import Reason
from tenfold.model.units import UsdMicros


class BurstPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may be rented, and when. Nothing is rented without a budget."""

    budget_usd: Annotated[float, Meta(gt=0, le=1e12)]
    """For all rents since the policy came into force."""
    nodes_max: Annotated[int, Meta(ge=1, le=10_000)] = 1
    """Rented at once."""
    wait_max_s: Annotated[float, Meta(ge=0, le=1e9)] = 3_600.0
    """A job without a deadline may wait this long for your own nodes."""
    gain_min_s: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    """A burst must end the job at least this much earlier."""
    idle_s: Annotated[float, Meta(ge=0, le=1e9)] = 600.0
    """A rented node without a job is released after this time."""
    changes_max: Annotated[int, Meta(ge=1, le=1_000)] = 2
    """Nodes rented in one `window_s`: a burst that is wrong stays small."""
    window_s: Annotated[float, Meta(gt=0, le=1e9)] = 600.0
    retry_s: Annotated[float, Meta(ge=0, le=1e9)] = 900.0
    """A zone without capacity is tried again after this time."""


class Zone(Struct, frozen=True, kw_only=True):
    """Where nodes can be rented, and on which terms."""

    name: str
    accelerator: str
    """As its nodes name it."""
    also: tuple[str, ...] = ()
    """Other names of it, which jobs may ask for."""
    gpus_per_node: int
    usd_micros_per_hour: UsdMicros
    """Of one node."""
    startup_s: float = 600.0
    gbps: float = 10.0
    """Rate at which data is staged."""
    egress_usd_per_gb: float = 0.0
    """For results that leave the zone."""
    tags: tuple[str, ...] = ()
    """Residency and trust: what jobs may need."""


class BurstJob(Struct, frozen=True, kw_only=True):
    """A pending job, with when it would end on your own nodes."""

    id: str
    gpus: int
    accelerators: tuple[str, ...] = ()
    """Empty for any."""
    needs: tuple[str, ...] = ()
    submitted_ms: int
    run_s: float
    """How long it runs: its time limit, or an estimate."""
    own_end_ms: int | None
    """None if it can never run on your own nodes."""
    deadline_ms: int | None = None
    data_gb: float = 0.0
    """Staged before the start."""
    results_gb: float = 0.0


class RentedNode(Struct, frozen=True, kw_only=True):
    """A node that is rented, or ordered."""

    id: str
    zone: str
    since_ms: int
    job: str = ""
    """The job that it was rented for, while that is not done."""
    idle_since_ms: int | None = None


class BurstState(Struct, frozen=True, kw_only=True):
    """What a decision starts from."""

    now_ms: int
    spent_usd_micros: int
    """Already paid for, up to now."""
    committed_usd_micros: int = 0
    """To be paid for the jobs that rented nodes still run."""
    nodes: tuple[RentedNode, ...] = ()
    rented_ms: tuple[int, ...] = ()
    """When nodes were rented, newest last."""
    failed_ms: dict[str, int] = {}
    """When each zone last had no capacity."""


class RentNodes(Struct, frozen=True, kw_only=True):
    """Rent nodes in a zone for a job."""

    job: str
    zone: str
    nodes: int
    usd_micros: int
    """Expected, staging, start-up and egress included."""
    end_ms: int
    saves_s: float
    """How much earlier the job ends; 0 for one that could not run at all."""


class ReleaseNode(Struct, frozen=True, kw_only=True):
    """Give a rented node back."""

    node: str
    because: str


class BurstRefusal(Struct, frozen=True, kw_only=True):
    """Why a job is not burst."""

    job: str
    reason: Reason


class BurstDecision(Struct, frozen=True, kw_only=True):
    """What to rent and release now, and why not more."""

    rents: tuple[RentNodes, ...] = ()
    releases: tuple[ReleaseNode, ...] = ()
    refusals: tuple[BurstRefusal, ...] = ()
