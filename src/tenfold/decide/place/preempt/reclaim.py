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

from tenfold.decide.place.preempt.victim_index import Givers, Priced
from tenfold.decide.place.queue.pending_queues import Option
from tenfold.decide.place.quota.allocations import PLAIN, Holding, Holdings, lost_ms
from tenfold.decide.place.quota.request import Amounts
from tenfold.decide.place.quota.team_tree import Team, Tree
from tenfold.decide.place.state.scratch import QuotaScratch
from tenfold.fleet.fleet import NEVER_RAN, FleetView
from tenfold.model.job.job import Job, Shape
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.units import Millis

Level = tuple[Team, Team]
"""A team that is within its quota, and the parent whose other teams owe it what they borrowed."""


class Own(NamedTuple):
    """Those of its own team whom a job may displace."""

    holdings: list[Holding]
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
        holdings: Holdings,
        scratch: QuotaScratch,
        view: FleetView,
        now_ms: Millis,
    ) -> None:
        self._govern = govern
        self._tree = tree
        self._holdings = holdings
        self._scratch = scratch
        self._view = view
        self._now_ms = now_ms
        self._borrowed: dict[Team, list[Holding]] = {}
        """By team, those who borrowed and may be stopped; nobody joins them within a walk."""
        self._givers: dict[object, Givers] = {}

    def victims(self, job: Job, team: Team, option: Option) -> list[Holding] | None:
        """Return those whose going lets a job start, cheapest first; None where none do."""
        if self._now_ms - job.submitted_ms < self._govern.delay_ms:
            return None
        own = self._own(job, team, option.amounts)
        givers = self._who_may_go(job, team, option.amounts, own)
        if not givers.priced:
            return None
        within = own.within if own.holdings else ()
        trial = Trial(self._tree, self._scratch, job.shape, team, option, within)
        return trial.fewest(givers)

    def gone(self, holding: Holding) -> None:
        """Hear that somebody was told to go."""
        for givers in self._givers.values():
            givers.gone(holding)

    def price(self, holding: Holding) -> int:
        """Return what a stop costs: GPU time lost and spent again."""
        lost = lost_ms(holding, self._now_ms)
        return holding.gpus_milli * (lost + self._govern.restart_cost_ms)

    def _own(self, job: Job, team: Team, amounts: Amounts) -> Own:
        """Return whom of its own team a job may displace, and the quotas it must be within then."""
        if not self._holdings.has_below(team, job.priority):
            return Own([], (), ())
        lower = [
            each
            for each in self._holdings.of(team)
            if each.job.priority < job.priority and self._is_free(each)
        ]
        nodes, is_within = team.path[:-1], self._tree.is_within
        if not lower or all(is_within(node, amounts) for node in nodes):
            return Own(lower, nodes, ())
        taken: dict[int, int] = {}
        for each in lower:
            for number, amount in each.amounts:
                taken[number] = taken.get(number, 0) + amount
        within = tuple(node for node in nodes if is_within(node, amounts, taken))
        beyond = tuple(node for node in nodes if node not in within)
        for node in beyond:
            borrowed = {id(each): None for each in self._holdings.borrowed(node)}
            lower = [each for each in lower if id(each) in borrowed]
        return Own(lower, within, beyond)

    def _who_may_go(self, job: Job, team: Team, amounts: Amounts, own: Own) -> Givers:
        """Return those whom a job may displace; the same for all who stand alike."""
        levels = [
            (mine, mine.parent)
            for mine in team.path
            if mine.parent is not None and self._tree.is_within(mine, amounts)
        ]
        key = (
            (team, job.priority, own.beyond) if own.holdings else None,
            tuple((above, mine if self._lent_by(mine) else None) for mine, above in levels),
        )
        givers = self._givers.get(key)
        if givers is None:
            found = self._may_go(own, levels)
            givers = self._givers[key] = Givers(self._scratch.capacity, priced(self, found))
        return givers

    def _may_go(self, own: Own, levels: Iterable[Level]) -> Iterator[Holding]:
        seen: dict[int, None] = {}
        for each in own.holdings:
            seen[id(each)] = None
            yield each
        for mine, above in levels:
            for other in above.children:
                for each in self._lent_by(other) if other is not mine else ():
                    if id(each) not in seen:
                        seen[id(each)] = None
                        yield each

    def _lent_by(self, team: Team) -> list[Holding]:
        """Return those of a team who borrowed and may be stopped now."""
        found = self._borrowed.get(team)
        if found is None:
            found = self._borrowed[team] = (
                [each for each in self._holdings.borrowed(team) if self._is_free(each)]
                if self._tree.is_over(team)
                else []
            )
        return found

    def _is_free(self, holding: Holding) -> bool:
        """Return whether a holding may be stopped at all, now."""
        if holding.stopping or not (holding.job.terms or PLAIN).preemptible:
            return False
        if self._now_ms < self._holdings.ripe_ms(holding):
            return False
        run = self._view.running.get(holding.job.id)
        if run is None or run.becoming is not None:
            return False
        most = self._govern.stops_per_job
        return not most or self._view.past.get(holding.job.id, NEVER_RAN).runs < most


def priced(reclaim: Reclaim, holdings: Iterable[Holding]) -> list[Priced]:
    """Return holdings with what their stops cost, cheapest first; of equals the newest."""
    found = sorted(
        (reclaim.price(each), -each.started_ms, -each.job.seq, each) for each in holdings
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
        self._away: dict[int, Holding] = {}
        self._changes: dict[int, int] = {}
        """Of those who are away, the numbers of the changes to undo."""
        self._is_tight = False
        """Whether it is known that nobody was sent in vain."""

    def fewest(self, givers: Givers) -> list[Holding] | None:
        """Return a cheap few whose going lets the job start, none of them in vain."""
        with self._scratch.trial():
            if not self._send_enough(givers):
                return None
            if not self._is_tight:
                self._let_off(sorted(self._away.values(), key=givers.rank, reverse=True))
            return sorted(self._away.values(), key=givers.rank)

    def _send_enough(self, givers: Givers) -> bool:
        """Send whoever must go for room, and then for quotas; False where that is no help."""
        shape, accelerator = self._shape, self._option.accelerator
        is_sure = givers.is_sure(shape, accelerator)
        has_room = self._has_room()
        for_room = [] if has_room else givers.for_room(shape, accelerator)
        if for_room is not None:
            self._send(for_room)
            if has_room or self._has_room():
                self._is_tight = is_sure and all(len(each.slots) == 1 for each in for_room)
                return self._pass_limits(givers.priced)
        if is_sure:
            return False
        self._back(list(self._away.values()))
        return self._send_more(givers.priced) and self._pass_limits(givers.priced)

    def _send_more(self, candidates: Sequence[Priced]) -> bool:
        """Send twice as many each time until there is room."""
        sent = 0
        while sent < len(candidates):
            more = candidates[sent : max(1, 2 * sent)]
            self._send([each for _, each in more if not each.stopping])
            sent += len(more)
            if self._has_room():
                return True
        return False

    def _pass_limits(self, candidates: Sequence[Priced]) -> bool:
        """Send the cheapest of those whose going brings a limit nearer that is in the way."""
        below: dict[Team, Iterator[Holding]] = {}
        while (node := self._limit()) is not None:
            if node not in below:
                below[node] = (each for _, each in candidates if node in each.team.path)
            others = (
                each for each in below[node] if id(each) not in self._away and not each.stopping
            )
            each = next(others, None)
            if each is None:
                return False
            self._is_tight = False
            self._send([each])
        return True

    def _let_off(self, those: Sequence[Holding]) -> None:
        """Let off, dearest first, everybody without whom it works as well."""
        self._back(those)
        if self._works():
            return
        self._send(those)
        if len(those) <= 1:
            return
        half = len(those) // 2
        self._let_off(those[:half])
        self._let_off(those[half:])

    def _send(self, those: Iterable[Holding]) -> None:
        for each in those:
            self._away[id(each)] = each
            self._changes[id(each)] = self._scratch.evict(each)

    def _back(self, those: Iterable[Holding]) -> None:
        for each in those:
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

    def _works(self) -> bool:
        return self._limit() is None and self._has_room()

    def _has_room(self) -> bool:
        return self._scratch.fits_in(self._shape, self._option.accelerator)
