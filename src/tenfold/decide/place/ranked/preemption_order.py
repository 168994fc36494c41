"""Allocations in the order in which they may be preempted.

Allocations of one family and level share a rank and a bucket. Buckets are filled only once a job
has to wait: most jobs start and end without being compared.
"""

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from tenfold.decide.place.ranked.ranking import (
    NEVER,
    Family,
    RankBucket,
    RankedAllocation,
    Ranking,
    level_at,
)
from tenfold.model.ids import JobId, NodeId
from tenfold.model.units import Millis

UNRANKED_MOST = 20_000
"""Allocations kept outside of buckets before those that have ended are cleared away."""


class PreemptionOrder:
    """The allocations under one ranking. With `keep_factor` below 1 they are preempted later."""

    def __init__(self, ranking: Ranking, keep_factor: float, review_ms: int) -> None:
        self._ranking = ranking
        self._keep_factor = keep_factor
        self._review_ms = review_ms
        self._tracks_allocations = ranking.tracks_allocations
        self._bounds = ranking.bounds
        self._levels = len(self._bounds)
        self._compares = ranking.preempts and not ranking.live
        self.held: dict[JobId, RankedAllocation] = {}
        self.stopping: dict[JobId, RankedAllocation] = {}
        self._at: dict[NodeId, dict[JobId, tuple[RankedAllocation, int]]] = {}
        """Allocations in buckets, and their GPUs, by node."""
        self._settled_ms = -1
        self._unranked: deque[RankedAllocation] = deque()
        """Allocations outside of buckets, in order of start."""
        self._order: list[tuple[float, Family, int, RankBucket]] = []
        self._buckets: dict[Family, dict[int, RankBucket]] = {}
        self._joined: list[RankBucket] = []
        """Buckets that allocations joined since ranks were last computed."""
        self._level_changes: dict[int, list[RankedAllocation]] = {}
        """Allocations by the review at which they reach their next level."""
        self._reviews: list[int] = []
        """A heap of those reviews."""

    def add(self, allocation: RankedAllocation) -> None:
        """Add an allocation."""
        self.held[allocation.job.id] = allocation
        if allocation.before.runs:
            allocation.level = level_at(self._ranking, allocation.job, allocation.before.ran_ms)
        if self._compares:
            unranked = self._unranked
            unranked.append(allocation)
            if len(unranked) > UNRANKED_MOST:
                kept = (each for each in unranked if self.held.get(each.job.id) is each)
                self._unranked = deque(kept)
        if self._tracks_allocations:
            self._ranking.held(allocation, 1)

    def remove(self, job_id: JobId) -> RankedAllocation:
        """Remove an allocation and return it."""
        allocation = self.held.pop(job_id)
        if allocation.stopping:
            self.stopping.pop(job_id, None)
        if allocation.bucket is not None:
            self._leave(allocation)
            for slot in allocation.slots:
                del self._at[slot.node][job_id]
        if self._tracks_allocations:
            self._ranking.held(allocation, -1)
        return allocation

    def stop(self, allocation: RankedAllocation) -> None:
        """Note that a stop is ordered: it is not preempted twice."""
        allocation.stopping = True
        self.stopping[allocation.job.id] = allocation
        if allocation.preemptible:
            allocation.preemptible = False
            if allocation.bucket is not None:
                self._less(allocation.bucket)

    def settle(self, review_ms: int) -> None:
        """Put allocations into buckets and levels as of a review.

        An allocation that started since the review joins at the next one, so it is never
        preempted at once. `reorder` ranks the joined buckets, because learning from these
        changes may change their ranks again.
        """
        if review_ms == self._settled_ms:
            return
        self._settled_ms = review_ms
        unranked, held = self._unranked, self.held
        while unranked and unranked[0].started_ms < review_ms:
            allocation = unranked.popleft()
            if held.get(allocation.job.id) is allocation:
                self._join(allocation, review_ms)
        reviews = self._reviews
        while reviews and reviews[0] <= review_ms:
            for allocation in self._level_changes.pop(heappop(reviews)):
                if allocation.bucket is not None:
                    self._change_level(allocation, allocation.bucket, review_ms)

    def reorder(self, families: Iterable[Family] | None) -> float:
        """Place buckets whose rank changed or that were joined; return the greatest rank.

        Without families, all ranks may have changed.
        """
        if families is None:
            return self._reorder_all()
        rank_of, buckets_by, greatest = self._ranking.bucket_rank, self._buckets, 0.0
        for family in families:
            buckets = buckets_by.get(family)
            if buckets is None:
                continue
            for level, bucket in buckets.items():
                rank = rank_of(family, level)
                if rank != bucket.rank or not bucket.placed:
                    self._place(bucket, rank)
                    greatest = max(greatest, rank)
        for bucket in self._joined:
            if not bucket.placed:
                rank = rank_of(bucket.family, bucket.level)
                self._place(bucket, rank)
                greatest = max(greatest, rank)
        self._joined.clear()
        return greatest

    def _reorder_all(self) -> float:
        """Rank and place every bucket again: one sort is cheaper than moving each."""
        rank_of, greatest = self._ranking.bucket_rank, 0.0
        order: list[tuple[float, Family, int, RankBucket]] = []
        for family, buckets in self._buckets.items():
            for level, bucket in buckets.items():
                rank = rank_of(family, level)
                if rank != bucket.rank or not bucket.placed:
                    bucket.rank, bucket.placed = rank, True
                    greatest = max(greatest, rank)
                bucket.listed = bucket.preemptible_count > 0
                if bucket.listed:
                    order.append((rank, family, level, bucket))
        order.sort()
        self._order = order
        self._joined.clear()
        return greatest

    def _place(self, bucket: RankBucket, rank: float) -> None:
        """Set the rank of a bucket, and place it if any allocation in it is preemptible."""
        if bucket.listed and rank != bucket.rank:
            self._strike(bucket)
        bucket.rank, bucket.placed = rank, True
        if bucket.preemptible_count and not bucket.listed:
            self._list(bucket)

    def next_change_ms(self) -> int:
        """Return when an allocation next joins a bucket or reaches its next level, or NEVER."""
        reviews, level_changes = self._reviews, self._level_changes
        while reviews:
            queue = level_changes[reviews[0]]
            while queue and queue[-1].bucket is None:
                queue.pop()
            if queue:
                break
            del level_changes[heappop(reviews)]
        next_ms = reviews[0] if reviews else NEVER
        unranked = self._unranked
        while unranked and self.held.get(unranked[0].job.id) is not unranked[0]:
            unranked.popleft()
        return min(next_ms, unranked[0].started_ms + 1) if unranked else next_ms

    def on_node(self, node: NodeId) -> list[tuple[float, int]]:
        """Return for each allocation on a node the rank that could preempt it, and its GPUs."""
        keep = self._keep_factor
        return [
            (allocation.bucket.rank * keep, gpus)
            for allocation, gpus in self._at.get(node, {}).values()
            if allocation.preemptible and allocation.bucket is not None
        ]

    def worst(self) -> float:
        """Return the rank below which a pending job may preempt anything at all."""
        return self._order[-1][0] * self._keep_factor if self._order else 0.0

    def limit(self, rank: float) -> float:
        """Return the rank below which a pending job may preempt allocations of this rank."""
        return rank * self._keep_factor

    def candidates(self, rank: float, now_ms: Millis) -> Iterator[RankedAllocation]:
        """Yield allocations that a job of this rank may preempt, worst first."""
        keep = self._keep_factor
        if self._ranking.live:
            yield from self._live_candidates(rank, now_ms)
            return
        for _, _, _, bucket in reversed(self._order):
            if bucket.rank * keep <= rank:
                return
            if len(bucket.allocations) == 1:
                yield from bucket.allocations.values()
            else:
                free = [each for each in bucket.allocations.values() if each.preemptible]
                yield from sorted(free, key=_arrival, reverse=True)

    def _live_candidates(self, rank: float, now_ms: Millis) -> Iterator[RankedAllocation]:
        rank_of = self._ranking.allocation_rank
        places = [(rank_of(each, now_ms), *_arrival(each), each) for each in self.held.values()]
        for allocation_rank, _, _, allocation in sorted(places, key=_place, reverse=True):
            if allocation_rank * self._keep_factor <= rank:
                return
            yield allocation

    def _join(self, allocation: RankedAllocation, review_ms: int) -> None:
        ranking, job = self._ranking, allocation.job
        family = allocation.family
        if family is None:
            family = allocation.family = ranking.family(job)
            allocation.weight = ranking.weight(job)
        served_ms = allocation.before.ran_ms + review_ms - allocation.started_ms
        level = bisect_right(self._bounds, served_ms * allocation.weight) - 1
        if level != allocation.level:
            ranking.level_changed(job, family, allocation.level, level)
            allocation.level = level
        buckets = self._buckets.get(family)
        if buckets is None:
            buckets = self._buckets[family] = {}
        bucket = buckets.get(level)
        if bucket is None:
            bucket = buckets[level] = RankBucket(family, level)
        self._more(bucket, allocation)
        self._time(allocation, level)
        for slot in allocation.slots:
            on_node = self._at.get(slot.node)
            if on_node is None:
                on_node = self._at[slot.node] = {}
            on_node[job.id] = (allocation, slot.gpus)

    def _change_level(
        self, allocation: RankedAllocation, bucket: RankBucket, review_ms: int
    ) -> None:
        """Move an allocation to the level it has reached, or its whole bucket."""
        family = bucket.family
        served_ms = allocation.before.ran_ms + review_ms - allocation.started_ms
        level = bisect_right(self._bounds, served_ms * allocation.weight) - 1
        self._ranking.level_changed(allocation.job, family, allocation.level, level)
        allocation.level = level
        buckets = self._buckets[family]
        other = buckets.get(level)
        if len(bucket.allocations) == 1:
            if bucket.listed:
                self._strike(bucket)
            del buckets[bucket.level]
            if other is None:
                bucket.level = level
                buckets[level] = bucket
                if bucket.placed:
                    bucket.placed = False
                    self._joined.append(bucket)
            else:
                self._more(other, allocation)
        else:
            del bucket.allocations[allocation.job.id]
            if allocation.preemptible:
                self._less(bucket)
            if other is None:
                other = buckets[level] = RankBucket(family, level)
            self._more(other, allocation)
        self._time(allocation, level)

    def _time(self, allocation: RankedAllocation, level: int) -> None:
        """Note the review at which an allocation reaches its next level."""
        level += 1
        if level < self._levels:
            every_ms = self._review_ms
            left_ms = -(-self._bounds[level] // allocation.weight) - allocation.before.ran_ms
            review_ms = -(-(allocation.started_ms + left_ms) // every_ms) * every_ms
            level_changes = self._level_changes.get(review_ms)
            if level_changes is None:
                level_changes = self._level_changes[review_ms] = []
                heappush(self._reviews, review_ms)
            level_changes.append(allocation)

    def _leave(self, allocation: RankedAllocation) -> None:
        bucket = allocation.bucket
        assert bucket is not None
        allocation.bucket = None
        del bucket.allocations[allocation.job.id]
        if allocation.preemptible:
            self._less(bucket)
        if not bucket.allocations:
            buckets = self._buckets[bucket.family]
            del buckets[bucket.level]
            if not buckets:
                del self._buckets[bucket.family]

    def _more(self, bucket: RankBucket, allocation: RankedAllocation) -> None:
        """Add an allocation to a bucket, which `reorder` then ranks and places."""
        bucket.allocations[allocation.job.id] = allocation
        allocation.bucket = bucket
        if bucket.placed:
            bucket.placed = False
            self._joined.append(bucket)
        if allocation.preemptible:
            bucket.preemptible_count += 1

    def _less(self, bucket: RankBucket) -> None:
        """Count one preemptible allocation less; a bucket without any is not searched."""
        bucket.preemptible_count -= 1
        if not bucket.preemptible_count and bucket.listed:
            self._strike(bucket)

    def _list(self, bucket: RankBucket) -> None:
        bucket.listed = True
        insort(self._order, (bucket.rank, bucket.family, bucket.level, bucket))

    def _strike(self, bucket: RankBucket) -> None:
        bucket.listed = False
        del self._order[bisect_left(self._order, (bucket.rank, bucket.family, bucket.level))]


def _arrival(allocation: RankedAllocation) -> tuple[int, int]:
    return allocation.job.submitted_ms, allocation.job.seq


def _place(place: tuple[float, int, int, RankedAllocation]) -> tuple[float, int, int]:
    return place[:3]
