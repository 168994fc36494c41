"""Which jobs to preempt: the cheapest victims whose stops actually let a job start.

A job may preempt a borrowed job if its team is within quota, or a lower priority of its own
team. A job within quota is preempted only for one that will be within quota too; otherwise the
two could preempt each other forever. A stop costs the work since the last checkpoint plus a
restart, for each GPU. The search goes node by node, and domain by domain where a gang must share
one. Each result is tried; where CPUs, memory, shared devices or rack power break it, more
candidates are added, cheapest first. Then every victim that is not needed is spared.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tenfold.decide.place.preempt.victim_index import Priced, VictimIndex
from tenfold.decide.place.queue.pending_queues import Option
from tenfold.decide.place.quota.allocations import PLAIN, Allocation, Allocations, lost_ms
from tenfold.decide.place.quota.request import Amounts
from tenfold.decide.place.quota.team_tree import Team, Tree
from tenfold.decide.place.state.scratch import QuotaScratch
from tenfold.fleet.fleet import NEVER_RAN, FleetView
from tenfold.model.job.job import Job, Shape
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.units import Millis

Level = tuple[Team, Team]
"""A team within its quota, and the parent whose other teams borrowed from it."""


class OwnTeamVictims(NamedTuple):
    """Jobs of its own team that a job may preempt."""

    allocations: list[Allocation]
    within: tuple[Team, ...]
    """Teams whose quota it must be within once they have stopped."""
    beyond: tuple[Team, ...]
    """Teams whose quota it exceeds even then; there only borrowed jobs are preempted."""


class Reclaim:
    """The search for victims at one moment."""

    def __init__(
        self,
        govern: GovernanceRules,
        tree: Tree,
        allocations: Allocations,
        scratch: QuotaScratch,
        view: FleetView,
        now_ms: Millis,
    ) -> None:
        self._govern = govern
        self._tree = tree
        self._allocations = allocations
        self._scratch = scratch
        self._view = view
        self._now_ms = now_ms
        self._borrowed: dict[Team, list[Allocation]] = {}
        """By team, borrowed jobs that may be stopped; none are added within a pass."""
        self._victim_indexes: dict[object, VictimIndex] = {}

    def victims(self, job: Job, team: Team, option: Option) -> list[Allocation] | None:
        """Return victims whose stops let a job start, cheapest first; None if there are none."""
        if self._now_ms - job.submitted_ms < self._govern.delay_ms:
            return None
        own = self._own(job, team, option.amounts)
        victim_index = self._victim_index_for(job, team, option.amounts, own)
        if not victim_index.priced:
            return None
        within = own.within if own.allocations else ()
        trial = Trial(self._tree, self._scratch, job.shape, team, option, within)
        return trial.minimal(victim_index)

    def gone(self, allocation: Allocation) -> None:
        """Note that a stop was ordered."""
        for victim_index in self._victim_indexes.values():
            victim_index.gone(allocation)

    def price(self, allocation: Allocation) -> int:
        """Return the cost of a stop: GPU time lost and spent again."""
        lost = lost_ms(allocation, self._now_ms)
        return allocation.gpus_milli * (lost + self._govern.restart_cost_ms)

    def _own(self, job: Job, team: Team, amounts: Amounts) -> OwnTeamVictims:
        """Return which jobs of its own team a job may preempt, and the quotas it must be within."""
        if not self._allocations.has_lower_priority(team, job.priority):
            return OwnTeamVictims([], (), ())
        lower = [
            each
            for each in self._allocations.of(team)
            if each.job.priority < job.priority and self._is_preemptible(each)
        ]
        nodes, is_within = team.path[:-1], self._tree.is_within
        if not lower or all(is_within(node, amounts) for node in nodes):
            return OwnTeamVictims(lower, nodes, ())
        taken: dict[int, int] = {}
        for each in lower:
            for number, amount in each.amounts:
                taken[number] = taken.get(number, 0) + amount
        within = tuple(node for node in nodes if is_within(node, amounts, taken))
        beyond = tuple(node for node in nodes if node not in within)
        for node in beyond:
            borrowed = {id(each): None for each in self._allocations.borrowed(node)}
            lower = [each for each in lower if id(each) in borrowed]
        return OwnTeamVictims(lower, within, beyond)

    def _victim_index_for(
        self, job: Job, team: Team, amounts: Amounts, own: OwnTeamVictims
    ) -> VictimIndex:
        """Return the jobs that a job may preempt; shared by jobs with the same candidates."""
        levels = [
            (mine, mine.parent)
            for mine in team.path
            if mine.parent is not None and self._tree.is_within(mine, amounts)
        ]
        key = (
            (team, job.priority, own.beyond) if own.allocations else None,
            tuple((above, mine if self._reclaimable(mine) else None) for mine, above in levels),
        )
        victim_index = self._victim_indexes.get(key)
        if victim_index is None:
            found = self._candidates(own, levels)
            victim_index = self._victim_indexes[key] = VictimIndex(
                self._scratch.capacity, priced(self, found)
            )
        return victim_index

    def _candidates(self, own: OwnTeamVictims, levels: Iterable[Level]) -> Iterator[Allocation]:
        seen: dict[int, None] = {}
        for each in own.allocations:
            seen[id(each)] = None
            yield each
        for mine, above in levels:
            for other in above.children:
                for each in self._reclaimable(other) if other is not mine else ():
                    if id(each) not in seen:
                        seen[id(each)] = None
                        yield each

    def _reclaimable(self, team: Team) -> list[Allocation]:
        """Return borrowed jobs of a team that may be stopped now."""
        found = self._borrowed.get(team)
        if found is None:
            found = self._borrowed[team] = (
                [each for each in self._allocations.borrowed(team) if self._is_preemptible(each)]
                if self._tree.is_over(team)
                else []
            )
        return found

    def _is_preemptible(self, allocation: Allocation) -> bool:
        """Return whether a job may be stopped now."""
        if allocation.stopping or not (allocation.job.terms or PLAIN).preemptible:
            return False
        if self._now_ms < self._allocations.preemptible_from_ms(allocation):
            return False
        run = self._view.running.get(allocation.job.id)
        if run is None or run.becoming is not None:
            return False
        most = self._govern.stops_per_job
        return not most or self._view.past.get(allocation.job.id, NEVER_RAN).runs < most


def priced(reclaim: Reclaim, allocations: Iterable[Allocation]) -> list[Priced]:
    """Return allocations with the cost of their stops, cheapest first; among equals the newest."""
    found = sorted(
        (reclaim.price(each), -each.started_ms, -each.job.seq, each) for each in allocations
    )
    return [(price, each) for price, _, _, each in found]


class Trial:
    """Tentative evictions, on the index and in the tree; all are undone at the end."""

    def __init__(
        self,
        tree: Tree,
        scratch: QuotaScratch,
        shape: Shape,
        team: Team,
        option: Option,
        within: tuple[Team, ...] = (),
    ) -> None:
        self._within = within
        self._tree = tree
        self._scratch = scratch
        self._shape = shape
        self._team = team
        self._option = option
        self._away: dict[int, Allocation] = {}
        self._changes: dict[int, int] = {}
        """For evicted allocations, the number of the change to undo."""
        self._is_minimal = False
        """Whether every victim is known to be needed."""

    def minimal(self, victim_index: VictimIndex) -> list[Allocation] | None:
        """Return a cheap minimal set of victims that lets the job start."""
        with self._scratch.trial():
            if not self._evict_enough(victim_index):
                return None
            if not self._is_minimal:
                self._spare_unneeded(
                    sorted(self._away.values(), key=victim_index.rank, reverse=True)
                )
            return sorted(self._away.values(), key=victim_index.rank)

    def _evict_enough(self, victim_index: VictimIndex) -> bool:
        """Evict for nodes, then for quotas; False if that does not help."""
        shape, accelerator = self._shape, self._option.accelerator
        is_sure = victim_index.is_sure(shape, accelerator)
        has_capacity = self._has_capacity()
        victims_for = [] if has_capacity else victim_index.victims_for(shape, accelerator)
        if victims_for is not None:
            self._evict(victims_for)
            if has_capacity or self._has_capacity():
                self._is_minimal = is_sure and all(len(each.slots) == 1 for each in victims_for)
                return self._pass_limits(victim_index.priced)
        if is_sure:
            return False
        self._restore(list(self._away.values()))
        return self._evict_more(victim_index.priced) and self._pass_limits(victim_index.priced)

    def _evict_more(self, candidates: Sequence[Priced]) -> bool:
        """Evict twice as many each time until the shape fits."""
        sent = 0
        while sent < len(candidates):
            more = candidates[sent : max(1, 2 * sent)]
            self._evict([each for _, each in more if not each.stopping])
            sent += len(more)
            if self._has_capacity():
                return True
        return False

    def _pass_limits(self, candidates: Sequence[Priced]) -> bool:
        """Evict the cheapest jobs that count towards the limit in the way."""
        below: dict[Team, Iterator[Allocation]] = {}
        while (node := self._limit()) is not None:
            if node not in below:
                below[node] = (each for _, each in candidates if node in each.team.path)
            others = (
                each for each in below[node] if id(each) not in self._away and not each.stopping
            )
            each = next(others, None)
            if each is None:
                return False
            self._is_minimal = False
            self._evict([each])
        return True

    def _spare_unneeded(self, allocations: Sequence[Allocation]) -> None:
        """Spare, most expensive first, every victim that is not needed."""
        self._restore(allocations)
        if self._fits():
            return
        self._evict(allocations)
        if len(allocations) <= 1:
            return
        half = len(allocations) // 2
        self._spare_unneeded(allocations[:half])
        self._spare_unneeded(allocations[half:])

    def _evict(self, allocations: Iterable[Allocation]) -> None:
        for each in allocations:
            self._away[id(each)] = each
            self._changes[id(each)] = self._scratch.evict(each)

    def _restore(self, allocations: Iterable[Allocation]) -> None:
        for each in allocations:
            del self._away[id(each)]
            self._scratch.undo(self._changes.pop(id(each)))

    def _limit(self) -> Team | None:
        """Return the team whose limit or quota is in the way."""
        amounts = self._option.amounts
        obstacle = self._tree.obstacle(self._team, amounts)
        if obstacle is not None:
            return obstacle[0]
        if any(self._team in each.team.path for each in self._away.values()):
            for node in self._within:
                if not self._tree.is_within(node, amounts):
                    return node
        return None

    def _fits(self) -> bool:
        return self._limit() is None and self._has_capacity()

    def _has_capacity(self) -> bool:
        return self._scratch.fits_in(self._shape, self._option.accelerator)
