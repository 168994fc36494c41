"""Who goes first: what a policy has to say, apart from how room is found.

Jobs belong to families that the policy tells apart, and climb levels as they are served.
Waiting jobs of one shape, family and level form a group. Turns are compared across groups
and against jobs that hold room: a smaller turn goes first. All of it must follow from the
view, the time and the policy alone, so that a fresh decider decides as a warm one.
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
"""Size, team, and two numbers more: what a policy tells apart, 0 or empty where it does not."""

ALIKE: Family = (0, "", 0, 0)


class RankedAllocation:
    """A job that holds room: ordered, running, or being stopped."""

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
        self.preemptible = terms is None or terms.preemptible
        """Whether it may be displaced: its terms allow it, and it is not being stopped already."""
        self.family: Family | None = None
        self.level = 0
        self.weight = 0
        self.bucket: RankBucket | None = None
        """Where it stands among those that may be displaced, while somebody waits."""

    def served_ms(self, now_ms: int) -> int:
        """Return how long it has held room in all its runs."""
        return self.before.ran_ms + now_ms - self.started_ms


class RankBucket:
    """Holders of one family and level: they share a turn."""

    __slots__ = ("allocations", "family", "level", "listed", "placed", "preemptible_count", "rank")

    def __init__(self, family: Family, level: int) -> None:
        self.family = family
        self.level = level
        self.rank = 0.0
        self.allocations: dict[JobId, RankedAllocation] = {}
        self.preemptible_count = 0
        """Holders that may be displaced."""
        self.listed = False
        """Whether it stands among those that may be displaced: while anybody is free to go."""
        self.placed = True
        """Whether it has its turn; not after somebody joined, until turns are given again."""


def level_at(ranking: "Ranking", job: Job, served_ms: int) -> int:
    """Return the level that a job has reached after so much service."""
    return bisect_right(ranking.bounds, served_ms * ranking.weight(job)) - 1


class Group:
    """Waiting jobs of one shape, family and level."""

    __slots__ = ("family", "jobs", "level", "rank", "shape", "stamp")

    def __init__(self, shape: Shape, family: Family, level: int) -> None:
        self.shape = shape
        self.family = family
        self.level = level
        self.jobs: list[tuple[int, int, int, Job]] = []
        """A heap of (key, submitted, number, job)."""
        self.stamp = 0
        """Renewed at each change of head or turn, so that stale places are known."""
        self.rank = 0.0


class Ranking(Protocol):
    """The order of a policy."""

    @property
    def preempts(self) -> bool:
        """Whether a job that holds room may be displaced at all."""
        ...

    @property
    def live(self) -> bool:
        """Whether the turns of holders change with time itself, not in steps."""
        ...

    @property
    def tracks_allocations(self) -> bool:
        """Whether it wants to hear who takes room and who gives it back (`held`)."""
        ...

    def begin(self, view: FleetView) -> None:
        """Start again from the view: forget what was learned from news."""
        ...

    def key(self, job: Job, past: PriorRuns) -> int:
        """Return the order of a job inside its group."""
        ...

    def family(self, job: Job) -> Family:
        """Return what else than its shape tells its group from others."""
        ...

    @property
    def bounds(self) -> Sequence[int]:
        """Service at which each level begins, from 0 up, in ms times the weight of a job."""
        ...

    def weight(self, job: Job) -> int:
        """Return what a job's service is multiplied by before it is held to the bounds."""
        ...

    def rank(self, group: Group) -> float:
        """Return the turn of a group's head."""
        ...

    def bucket_rank(self, family: Family, level: int) -> float:
        """Return the turn of holders; a job with a smaller one may displace them."""
        ...

    def allocation_rank(self, allocation: RankedAllocation, now_ms: Millis) -> float:
        """Return the turn of one holder now; asked only where `live`."""
        ...

    def level_changed(self, job: Job, family: Family, before: int, after: int) -> None:
        """Hear that an unfinished job has gone from one level to another."""
        ...

    def held(self, allocation: RankedAllocation, sign: int) -> None:
        """Hear that a job took room (1) or gave it back (-1)."""
        ...

    def ended(self, view: FleetView, allocation: RankedAllocation) -> None:
        """Hear that a holder is over; the view's history has it already."""
        ...

    def changed(self, view: FleetView) -> Iterable[Family] | None:
        """Return families whose turns changed since the last call; None means all may have."""
        ...
