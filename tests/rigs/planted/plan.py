"""What a planted fleet is made of: all that decides where it breaks, and nothing else.

A planted fleet has one site, one pool of nodes in full racks, at most one tier, and jobs alike
that come evenly. Whoever makes one and whoever tells its truth share these words only.
"""

from msgspec import Struct

from tenfold.model.facts.failure_law import NO_FAILURES, FailureLaw
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.growth.growth import Axis, GrowSpec

NODE_GPUS = 8
WITH_NODES: tuple[Axis, ...] = ("nodes", "all")
WITH_JOBS: tuple[Axis, ...] = ("jobs", "teams", "nodes", "all")
WITH_DATA: tuple[Axis, ...] = ("data", "all")
WITH_TRAFFIC: tuple[Axis, ...] = ("traffic", "all")
FULLER: tuple[Axis, ...] = ("jobs", "teams")
"""Axes along which jobs come more often to the nodes that there are."""


class Work(Struct, frozen=True, kw_only=True):
    """Jobs that take one node each, come one every so often, and run as long as each other."""

    jobs: int
    every_s: float
    runs_s: float
    gpus: int = NODE_GPUS
    """GPUs of a job. With more than half of a node no second job fits beside it."""
    teams: int = 1
    """Teams take turns, so each has as many jobs as any other."""
    quota_nodes: int = 0
    """Nodes that the first team may hold at once; 0 means as many as there are."""
    falls: float = 0.0
    """Power of a job's size with which its speed a GPU falls."""
    read_bytes_per_s_per_gpu: float = 0.0
    save_bytes: float = 0.0
    save_every_s: float = 0.0
    is_run: bool = False
    """Whether the history says when jobs started, so that waits can be judged."""

    @property
    def running(self) -> float:
        """Jobs that run at once, on average."""
        return self.runs_s / self.every_s

    @property
    def draws(self) -> bool:
        """Whether jobs draw on a tier."""
        return bool(self.read_bytes_per_s_per_gpu or self.save_bytes)


class UsageLine(Struct, frozen=True, kw_only=True):
    """A measured resource: so much stands still, so much grows with the factor."""

    layer: str
    still: float
    grows: float
    limit: float


class Replica(Struct, frozen=True):
    """The best replica of the service on the pool: requests a second, and its GPUs."""

    qps: float
    gpus: int


class Plan(Struct, frozen=True, kw_only=True):
    """All that decides where a planted fleet breaks."""

    axis: Axis
    spec: FleetSpec
    grow: GrowSpec
    work: Work | None = None
    lines: tuple[UsageLine, ...] = ()
    failures: FailureLaw = NO_FAILURES
    replica: Replica | None = None
    counts_assumed: bool = False

    @property
    def runs_count(self) -> bool:
        """Whether what only runs can tell may be named."""
        return self.work is not None and (self.work.is_run or self.counts_assumed)
