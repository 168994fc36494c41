"""Whom to displace: the cheapest of those who may be, on nodes where it really helps.

A job may displace another where it is within its quota and the other has borrowed, or
where both are of one team and its priority is higher. What is at home gives way only to what
will be at home, too: else others could take that back, and so on in a circle. A stop costs
the work since the last checkpoint and a restart, for every GPU it holds. The search goes node
by node, and where the members of a gang must stand together domain by domain. What it finds
is tried, and where CPUs, memory, shares of a device or the power of a rack made it wrong, more
and more of those who may go are sent, cheapest first. Then everybody is let off without whom
it works as well. Nobody is displaced in vain.
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
"""A team that is within its quota, and the parent whose other teams owe it what they borrowed."""


class OwnTeamVictims(NamedTuple):
    """Those of its own team whom a job may displace."""

    allocations: list[Allocation]
    within: tuple[Team, ...]
    """Teams whose quota it must be within once they are gone."""
    beyond: tuple[Team, ...]
    """Teams beyond whose quota it is even then; there only who borrowed gives way."""


class Reclaim:
    """The search for those who must give way, at one moment."""

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
        """By team, those who borrowed and may be stopped; nobody joins them within a walk."""
        self._victim_indexes: dict[object, VictimIndex] = {}

    def victims(self, job: Job, team: Team, option: Option) -> list[Allocation] | None:
        """Return those whose going lets a job start, cheapest first; None where none do."""
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
        """Hear that somebody was told to go."""
        for victim_index in self._victim_indexes.values():
            victim_index.gone(allocation)

    def price(self, allocation: Allocation) -> int:
        """Return what a stop costs: GPU time lost and spent again."""
        lost = lost_ms(allocation, self._now_ms)
        return allocation.gpus_milli * (lost + self._govern.restart_cost_ms)

    def _own(self, job: Job, team: Team, amounts: Amounts) -> OwnTeamVictims:
        """Return whom of its own team a job may displace, and the quotas it must be within then."""
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
        """Return those whom a job may displace; the same for all who stand alike."""
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
        """Return those of a team who borrowed and may be stopped now."""
        found = self._borrowed.get(team)
        if found is None:
            found = self._borrowed[team] = (
                [each for each in self._allocations.borrowed(team) if self._is_preemptible(each)]
                if self._tree.is_over(team)
                else []
            )
        return found

    def _is_preemptible(self, allocation: Allocation) -> bool:
        """Return whether a holding may be stopped at all, now."""
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
    """Return holdings with what their stops cost, cheapest first; of equals the newest."""
    found = sorted(
        (reclaim.price(each), -each.started_ms, -each.job.seq, each) for each in allocations
    )
    return [(price, each) for price, _, _, each in found]


class Trial:
    """Who is away for a trial, on the index and in the tree; all come back in the end."""

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
        """Of those who are away, the numbers of the changes to undo."""
        self._is_minimal = False
        """Whether it is known that nobody was sent in vain."""

    def minimal(self, victim_index: VictimIndex) -> list[Allocation] | None:
        """Return a cheap few whose going lets the job start, none of them in vain."""
        with self._scratch.trial():
            if not self._evict_enough(victim_index):
                return None
            if not self._is_minimal:
                self._spare_unneeded(
                    sorted(self._away.values(), key=victim_index.rank, reverse=True)
                )
            return sorted(self._away.values(), key=victim_index.rank)

    def _evict_enough(self, victim_index: VictimIndex) -> bool:
        """Send whoever must go for room, and then for quotas; False where that is no help."""
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
        """Send twice as many each time until there is room."""
        sent = 0
        while sent < len(candidates):
            more = candidates[sent : max(1, 2 * sent)]
            self._evict([each for _, each in more if not each.stopping])
            sent += len(more)
            if self._has_capacity():
                return True
        return False

    def _pass_limits(self, candidates: Sequence[Priced]) -> bool:
        """Send the cheapest of those whose going brings a limit nearer that is in the way."""
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
        """Let off, dearest first, everybody without whom it works as well."""
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
