"""The interface of an ordering policy, apart from how nodes are found.

A policy divides jobs into families, and jobs move up levels as they are served. Pending jobs of
one shape, family and level form a group. Ranks are compared between groups and with allocations;
a smaller rank goes first. Ranks must depend only on the view, the time and the policy, so that a
new decider decides the same as one that has been running.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Protocol

from tenfold.fleet.capacity import Slots
from tenfold.fleet.fleet import FleetView
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, PriorRuns, Shape
from tenfold.model.units import Millis

NEVER = 1 << 62

Family = tuple[int, str, int, int]
"""Size, team and two more numbers: what a policy distinguishes, 0 or empty otherwise."""

ALIKE: Family = (0, "", 0, 0)


class RankedAllocation:
    """A job that holds nodes: ordered, running, or being stopped."""

    __slots__ = (
        "before",
        "bucket",
        "family",
        "gpus",
        "job",
        "level",
        "preemptible",
        "slots",
        "started_ms",
        "stopping",
        "weight",
    )

    def __init__(self, job: Job, slots: Slots, started_ms: int, before: PriorRuns) -> None:
        self.job = job
        self.slots = slots
        self.gpus = slots[0].gpus if len(slots) == 1 else sum(slot.gpus for slot in slots)
        self.started_ms = started_ms
        self.before = before
        """Its earlier runs."""
        self.stopping = False
        terms = job.terms
        self.preemptible = terms is None or terms.rerank_preemptible
        """Whether it may be preempted: its terms allow it, and it is not being stopped yet."""
        self.family: Family | None = None
        self.level = 0
        self.weight = 0
        self.bucket: RankBucket | None = None
        """Its bucket in the preemption order, while jobs are pending."""

    def served_ms(self, now_ms: int) -> int:
        """Return how long it has held nodes in all its runs."""
        return self.before.ran_ms + now_ms - self.started_ms


class RankBucket:
    """Allocations of one family and level, which share a rank."""

    __slots__ = ("allocations", "family", "level", "listed", "placed", "preemptible_count", "rank")

    def __init__(self, family: Family, level: int) -> None:
        self.family = family
        self.level = level
        self.rank = 0.0
        self.allocations: dict[JobId, RankedAllocation] = {}
        self.preemptible_count = 0
        """Number of allocations that may be preempted."""
        self.listed = False
        """Whether it is in the preemption order: only while it has preemptible allocations."""
        self.placed = True
        """Whether its rank is current; False after an allocation joined, until `reorder`."""


def level_at(ranking: "Ranking", job: Job, served_ms: int) -> int:
    """Return the level of a job after this much service."""
    return bisect_right(ranking.bounds, served_ms * ranking.weight(job)) - 1


class Group:
    """Pending jobs of one shape, family and level."""

    __slots__ = ("family", "jobs", "level", "rank", "shape", "stamp")

    def __init__(self, shape: Shape, family: Family, level: int) -> None:
        self.shape = shape
        self.family = family
        self.level = level
        self.jobs: list[tuple[int, int, int, Job]] = []
        """A heap of (key, submitted, number, job)."""
        self.stamp = 0
        """Changes with the head or the rank, so that stale entries are recognized."""
        self.rank = 0.0


class Ranking(Protocol):
    """The order of a policy."""

    @property
    def preempts(self) -> bool:
        """Whether allocations may be preempted at all."""
        ...

    @property
    def live(self) -> bool:
        """Whether ranks of allocations change continuously with time, not in steps."""
        ...

    @property
    def tracks_allocations(self) -> bool:
        """Whether it needs to know what is allocated and released (`held`)."""
        ...

    def begin(self, view: FleetView) -> None:
        """Start again from the view: forget what was learned from events."""
        ...

    def key(self, job: Job, past: PriorRuns) -> int:
        """Return the order of a job within its group."""
        ...

    def family(self, job: Job) -> Family:
        """Return what, apart from its shape, puts a job into a group."""
        ...

    @property
    def bounds(self) -> Sequence[int]:
        """Service at which each level begins, from 0 up, in ms times the weight of a job."""
        ...

    def weight(self, job: Job) -> int:
        """Return the factor for a job's service before it is compared with the bounds."""
        ...

    def rank(self, group: Group) -> float:
        """Return the rank of a group's head."""
        ...

    def bucket_rank(self, family: Family, level: int) -> float:
        """Return the rank of a bucket; a job with a smaller rank may preempt its allocations."""
        ...

    def allocation_rank(self, allocation: RankedAllocation, now_ms: Millis) -> float:
        """Return the rank of one allocation now; called only where `live`."""
        ...

    def level_changed(self, job: Job, family: Family, before: int, after: int) -> None:
        """Note that an unfinished job moved from one level to another."""
        ...

    def held(self, allocation: RankedAllocation, sign: int) -> None:
        """Note that a job was allocated (1) or released (-1)."""
        ...

    def ended(self, view: FleetView, allocation: RankedAllocation) -> None:
        """Note that a job ended; the view's history already has it."""
        ...

    def changed(self, view: FleetView) -> Iterable[Family] | None:
        """Return families whose ranks changed since the last call; None means that all may have."""
        ...
