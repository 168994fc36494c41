"""Pending jobs in ranked groups, and the shapes that are worth trying.

A shape whose head does not fit is parked. It is tried again when a node with enough for one of
its members is freed, when a better head arrives, or when ranks change.
"""

from collections.abc import Iterable
from heapq import heappop, heappush

from tenfold.decide.place.ranked.ranking import Family, Group, Ranking, level_at
from tenfold.fleet.capacity import Capacity
from tenfold.model.job.job import Job, PriorRuns, Shape

Head = tuple[float, int, int, int, Group]
"""(rank, submitted, number, stamp of the group at the time, group)."""


class ShapeClass:
    """One shape: the heads of its groups by rank, and whether to try them."""

    __slots__ = ("heads", "holdable", "least", "parked", "shape")

    def __init__(self, shape: Shape, least: int) -> None:
        self.shape = shape
        self.least = least
        """Nodes with fewer free GPUs do not unblock this shape while it is parked."""
        self.heads: list[Head] = []
        self.parked = False
        self.holdable = False
        """Whether an empty fleet is known to hold it."""


Best = tuple[ShapeClass, Group]
"""A shape, and the group with its first head."""


class RankedQueue:
    """The queue under one ranking."""

    def __init__(self, ranking: Ranking) -> None:
        self._ranking = ranking
        self.count = 0
        self._shown = 0
        self._groups: dict[tuple[str, Family, int], Group] = {}
        self._families: dict[Family, dict[tuple[str, int], Group]] = {}
        self._classes: dict[str, ShapeClass] = {}

    def add(self, job: Job, past: PriorRuns, capacity: Capacity) -> None:
        """Add a job to its group."""
        ranking, shape = self._ranking, job.shape
        family, level = ranking.family(job), level_at(ranking, job, past.ran_ms) if past.runs else 0
        group = self._groups.get((shape.key, family, level))
        if group is None:
            group = self._groups[shape.key, family, level] = Group(shape, family, level)
            self._families.setdefault(family, {})[shape.key, level] = group
        if shape.key not in self._classes:
            least = min((split.rest or split.gpus for split in capacity.splits(shape)), default=0)
            self._classes[shape.key] = ShapeClass(shape, least)
        place = (ranking.key(job, past), job.submitted_ms, job.seq, job)
        heappush(group.jobs, place)
        self.count += 1
        if group.jobs[0] is place:
            self._show(group)

    def waits(self, shape: Shape) -> bool:
        """Return whether jobs of this exact shape are pending."""
        each = self._classes.get(shape.key)
        return each is not None and bool(each.heads)

    def best(self) -> Best | None:
        """Return the head with the smallest rank among shapes that are not parked."""
        best: Head | None = None
        found: ShapeClass | None = None
        over: list[str] = []
        for key, each in self._classes.items():
            if each.parked:
                continue
            heads = each.heads
            while heads and heads[0][3] != heads[0][4].stamp:
                heappop(heads)
            if not heads:
                over.append(key)
            elif best is None or heads[0] < best:
                best, found = heads[0], each
        for key in over:
            del self._classes[key]
        return None if best is None or found is None else (found, best[4])

    def dequeue(self, each: ShapeClass, group: Group) -> None:
        """Remove a head from its group, and show the next one."""
        heappop(group.jobs)
        heappop(each.heads)
        self.count -= 1
        self._show(group)

    def capacity_freed(self, gpus: int) -> None:
        """Requeue the shapes that fit on a node with this many free GPUs."""
        for each in self._classes.values():
            if each.least <= gpus:
                each.parked = False

    def requeue(self, limit: float) -> None:
        """Requeue the shapes whose heads come before a rank."""
        for each in self._classes.values():
            if each.parked and each.heads and each.heads[0][0] < limit:
                each.parked = False

    def parked_before(self, limit: float) -> bool:
        """Return whether the head of a parked shape comes before a rank."""
        for each in self._classes.values():
            if each.parked and each.heads and each.heads[0][0] < limit:
                return True
        return False

    def requeue_for_node(self, free: int, on_node: list[tuple[float, int]]) -> None:
        """Requeue the shapes that would fit on a node without allocations of worse rank."""
        worst = max(on_node)[0]
        for each in self._classes.values():
            if each.parked and each.heads and (rank := each.heads[0][0]) < worst:
                room = free
                for limit, gpus in on_node:
                    if limit > rank:
                        room += gpus
                if room >= each.least:
                    each.parked = False

    def reorder(self, families: Iterable[Family] | None) -> None:
        """Update the heads of groups whose rank changed; drop empty groups."""
        rank_of = self._ranking.rank
        for family in list(self._families) if families is None else families:
            groups = self._families.get(family)
            if groups is None:
                continue
            waits = False
            for group in groups.values():
                if group.jobs:
                    waits = True
                    if rank_of(group) != group.rank:
                        self._show(group)
            if not waits:
                del self._families[family]
                for group in groups.values():
                    del self._groups[group.shape.key, family, group.level]

    def _show(self, group: Group) -> None:
        """Record a group's head and rank; its shape is worth another try."""
        self._shown += 1
        group.stamp = self._shown
        if not group.jobs:
            return
        _, submitted, number, _ = group.jobs[0]
        group.rank = rank = self._ranking.rank(group)
        each = self._classes[group.shape.key]
        heappush(each.heads, (rank, submitted, number, group.stamp, group))
        each.parked = False
