"""Running jobs by team, in order of start, and which of them borrow.

The jobs of a team that started first are within its quota; later jobs beyond it are borrowed. A
job that started within quota stays so until it ends, and a job preempted for it can never
preempt it in turn.
"""

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush

from tenfold.decide.place.quota.request import Amounts, milli_of
from tenfold.decide.place.quota.team_tree import Team, Tree
from tenfold.fleet.capacity import Slots
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Job
from tenfold.model.job.terms import Terms
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.units import Millis

PLAIN = Terms()


class Allocation:
    """A job that holds nodes and quota."""

    __slots__ = ("amounts", "job", "since_ms", "slots", "started_ms", "stopping", "team")

    def __init__(
        self, job: Job, slots: Slots, started_ms: int, team: Team, amounts: Amounts
    ) -> None:
        self.job = job
        self.slots = slots
        self.started_ms = started_ms
        self.since_ms = started_ms
        """When its start was ordered: earlier jobs count as within quota first."""
        self.team = team
        self.amounts = amounts
        """What it takes from quotas."""
        self.stopping = False

    @property
    def gpus_milli(self) -> int:
        """Thousandths of a GPU that it holds."""
        return milli_of(self.slots)


class Allocations:
    """All allocations of a fleet."""

    def __init__(self, govern: GovernanceRules, tree: Tree) -> None:
        self._govern = govern
        self._tree = tree
        self.held: dict[JobId, Allocation] = {}
        self.stopping: dict[JobId, Allocation] = {}
        self.with_terms = 0
        """Number of allocations of jobs with terms: these may be idle or elastic."""
        self.elastic: dict[JobId, Allocation] = {}
        """Allocations of elastic jobs."""
        self._by_team: dict[Team, dict[JobId, Allocation]] = {}
        self._on: dict[NodeId, dict[JobId, Allocation]] = {}
        self._priorities: dict[Team, dict[int, list[int]]] = {}
        """By team and priority: the amount of each resource, and the number of allocations."""
        self._not_yet_preemptible: list[tuple[int, int, Allocation]] = []
        """When allocations first become preemptible."""
        self._count_added = 0
        self._unseen = False
        """Whether an allocation became preemptible since the last check."""
        self._borrow_trackers: dict[Team, _BorrowTracker | None] = {}
        """Which allocations are within quota and which borrow; None where it must be recomputed."""

    def add(self, allocation: Allocation) -> None:
        """Add the allocation of a job."""
        job = allocation.job
        self.held[job.id] = allocation
        self._by_team.setdefault(allocation.team, {})[job.id] = allocation
        self._tree.take(allocation.team, allocation.amounts, 1)
        for slot in allocation.slots:
            self._on.setdefault(slot.node, {})[job.id] = allocation
        if job.terms is not None:
            self.with_terms += 1
            if job.terms.least_gpus:
                self.elastic[job.id] = allocation
        self._count(allocation, 1)
        for node in allocation.team.path:
            if node not in self._borrow_trackers:
                self._borrow_trackers[node] = _BorrowTracker(self._tree.resources.governed, node)
            tracker = self._borrow_trackers[node]
            if tracker is not None and not tracker.add(allocation):
                self._borrow_trackers[node] = None
        if job.terms is None or job.terms.preemptible:
            preemptible_from_ms = self.preemptible_from_ms(allocation)
            if preemptible_from_ms > allocation.started_ms:
                self._count_added += 1
                heappush(
                    self._not_yet_preemptible, (preemptible_from_ms, self._count_added, allocation)
                )
                # Entries that have become preemptible are dropped a few at a time.
                self._advance(allocation.started_ms)
            else:
                self._unseen = True

    def run_started(self, allocation: Allocation, at_ms: int) -> None:
        """Count the run time of an allocation from its actual start, not from its order."""
        allocation.started_ms = at_ms
        terms = allocation.job.terms
        if terms is not None and not terms.preemptible:
            return
        self._not_yet_preemptible = [
            each for each in self._not_yet_preemptible if each[2] is not allocation
        ]
        heapify(self._not_yet_preemptible)
        preemptible_from_ms = self.preemptible_from_ms(allocation)
        if preemptible_from_ms > at_ms:
            self._count_added += 1
            heappush(
                self._not_yet_preemptible, (preemptible_from_ms, self._count_added, allocation)
            )
        else:
            self._unseen = True

    def remove(self, job_id: JobId) -> Allocation:
        """Remove an allocation and return it."""
        allocation = self.held.pop(job_id)
        del self._by_team[allocation.team][job_id]
        self.stopping.pop(job_id, None)
        self._tree.take(allocation.team, allocation.amounts, -1)
        for slot in allocation.slots:
            del self._on[slot.node][job_id]
        self.with_terms -= allocation.job.terms is not None
        self.elastic.pop(job_id, None)
        self._count(allocation, -1)
        for node in allocation.team.path:
            tracker = self._borrow_trackers[node]
            if tracker is not None and tracker.borrowed.pop(job_id, None) is None:
                # It was within quota: a borrowed one may be within quota now.
                self._borrow_trackers[node] = None
        return allocation

    def _count(self, allocation: Allocation, sign: int) -> None:
        """Count an allocation under its team and priority."""
        by = self._priorities.setdefault(allocation.team, {})
        priority = allocation.job.priority
        sums = by.get(priority)
        if sums is None:
            sums = by[priority] = [0] * (len(self._tree.resources.names) + 1)
        for number, amount in allocation.amounts:
            sums[number] += amount * sign
        sums[-1] += sign
        if not sums[-1]:
            del by[priority]

    def stop(self, allocation: Allocation) -> None:
        """Note that a stop is ordered."""
        allocation.stopping = True
        self.stopping[allocation.job.id] = allocation

    def preemptible_from_ms(self, allocation: Allocation) -> int:
        """Return when an allocation has run its minimum time and becomes preemptible."""
        own = allocation.team.terms.min_run_ms
        return allocation.started_ms + (self._govern.min_run_ms if own is None else own)

    def newly_preemptible(self, now_ms: int) -> bool:
        """Return whether an allocation became preemptible since the last call."""
        self._advance(now_ms)
        unseen, self._unseen = self._unseen, False
        return unseen

    def has_newly_preemptible(self, now_ms: int) -> bool:
        """Return what `newly_preemptible` would, without resetting it."""
        self._advance(now_ms)
        return self._unseen

    def _advance(self, now_ms: int) -> None:
        """Note the allocations that have run their minimum time by now."""
        not_yet_preemptible = self._not_yet_preemptible
        while not_yet_preemptible and (
            not_yet_preemptible[0][0] <= now_ms
            or self.held.get(not_yet_preemptible[0][2].job.id) is not not_yet_preemptible[0][2]
        ):
            allocation = heappop(not_yet_preemptible)[2]
            self._unseen |= self.held.get(allocation.job.id) is allocation

    def on(self, node_id: NodeId) -> Iterable[Allocation]:
        """Return the allocations on a node."""
        return self._on.get(node_id, {}).values()

    def has_lower_priority(self, team: Team, priority: int) -> bool:
        """Return whether a team has allocations of a lower priority."""
        return any(each < priority for each in self._priorities.get(team, ()))

    def below(self, team: Team, priority: int, number: int) -> int:
        """Return how much of a resource a team's lower priorities use."""
        found = 0
        for each, sums in self._priorities.get(team, {}).items():
            if each < priority:
                found += sums[number]
        return found

    def next_preemptible_ms(self, now_ms: int) -> int | None:
        """Return the next time after now at which an allocation becomes preemptible."""
        self._advance(now_ms)
        return self._not_yet_preemptible[0][0] if self._not_yet_preemptible else None

    def of(self, team: Team) -> Iterator[Allocation]:
        """Yield the allocations of a team and of all teams below it."""
        yield from self._by_team.get(team, {}).values()
        for child in team.children:
            yield from self.of(child)

    def borrowed(self, team: Team) -> Iterable[Allocation]:
        """Return the borrowed allocations of a team and of all teams below it."""
        tracker = self._borrow_trackers.get(team)
        if tracker is None:
            tracker = self._borrow_trackers[team] = _BorrowTracker(
                self._tree.resources.governed, team
            )
            for allocation in sorted(self.of(team), key=_since):
                tracker.add(allocation)
        return tracker.borrowed.values()


class _BorrowTracker:
    """Which allocations of a team are within quota, in order of start, and which borrow."""

    def __init__(self, governed: list[bool], team: Team) -> None:
        self._governed = governed
        self._left = team.effective.copy()
        self._last = (-1, -1, -1)
        self.borrowed: dict[JobId, Allocation] = {}

    def add(self, allocation: Allocation) -> bool:
        """Add an allocation that started after all others; False if it did not."""
        since = _since(allocation)
        if since < self._last:
            return False
        self._last = since
        left, governed = self._left, self._governed
        if all(not governed[n] or left[n] >= amount for n, amount in allocation.amounts):
            for number, amount in allocation.amounts:
                left[number] -= amount
        else:
            self.borrowed[allocation.job.id] = allocation
        return True


def make_allocation(
    tree: Tree, job: Job, slots: Slots, started_ms: int, since_ms: int, accelerator: str
) -> Allocation:
    """Return the allocation of a job on slots of one accelerator type."""
    amounts = tree.resources.amounts_for(milli_of(slots), accelerator)
    allocation = Allocation(job, slots, started_ms, tree.team(job.team), amounts)
    allocation.since_ms = since_ms
    return allocation


def _since(allocation: Allocation) -> tuple[int, int, int]:
    return allocation.since_ms, allocation.job.submitted_ms, allocation.job.seq


def lost_ms(allocation: Allocation, now_ms: Millis) -> int:
    """Return the run time that a stop now would lose."""
    every = (allocation.job.terms or PLAIN).checkpoint_every_ms
    return (now_ms - allocation.started_ms) % every if every else 0
